/* SPDX-License-Identifier: MIT
 * Names between wire form and text, by ldns. */
#include "sardine.h"

#include <errno.h>
#include <ldns/ldns.h>
#include <stdlib.h>
#include <string.h>

#include "wire/name.h"

int sardine_name_from_text(const char *text, uint8_t name[255])
{
        if (!text || !name)
                return -EINVAL;
        ldns_rdf *rdf = ldns_dname_new_frm_str(text);
        if (!rdf)
                return SARDINE_ERR_NAME;
        size_t len = ldns_rdf_size(rdf);
        const uint8_t *wire = ldns_rdf_data(rdf);
        int result = SARDINE_ERR_NAME;
        if (len <= WIRE_NAME_MAX && wire_name_length(wire, wire + len) == len) {
                memcpy(name, wire, len);
                result = (int)len;
        }
        ldns_rdf_deep_free(rdf);
        return result;
}

int sardine_name_to_text(const uint8_t *name, size_t len, char *text, size_t size)
{
        if (!name || !text)
                return -EINVAL;
        if (len == 0 || wire_name_length(name, name + len) != len)
                return SARDINE_ERR_NAME;
        ldns_rdf *rdf = ldns_rdf_new_frm_data(LDNS_RDF_TYPE_DNAME, len, name);
        char *shown = rdf ? ldns_rdf2str(rdf) : NULL;
        int result = -ENOMEM;
        if (shown) {
                size_t need = strlen(shown);
                result = need < size ? (int)need : -EMSGSIZE;
                if (need < size)
                        memcpy(text, shown, need + 1);
        }
        free(shown);
        ldns_rdf_deep_free(rdf);
        return result;
}
