/* SPDX-License-Identifier: MIT */
#include "snapshot/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/file.h"
#include "snapshot/purgerecord.h"

int journal_read(int fd, size_t most, uint8_t **bytes, size_t *len)
{
        struct stat st;
        if (fstat(fd, &st) != 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        if ((uint64_t)st.st_size > most)
                return -EFBIG;
        *len = (size_t)st.st_size;
        *bytes = malloc(*len + 1);
        if (!*bytes)
                return -ENOMEM;
        if (pread(fd, *bytes, *len, 0) == (ssize_t)*len)
                return 0;
        free(*bytes);
        return -EIO;
}

int journal_open(const char *path)
{
        int fd = snapshot_open_own(path, O_RDWR | O_APPEND);
        if (fd < 0)
                return fd;
        uint8_t *bytes;
        size_t len;
        int err = journal_read(fd, JOURNAL_MOST, &bytes, &len);
        if (!err) {
                size_t whole = purge_record_check(bytes, len);
                /* Only then: somebody else may have added a record since we looked. */
                if (whole < len && ftruncate(fd, (off_t)whole) != 0)
                        err = -errno;
                free(bytes);
        }
        if (err)
                close(fd);
        return err ? err : fd;
}

int journal_append(int fd, const uint8_t *bytes, size_t len)
{
        while (len > 0) {
                ssize_t n = write(fd, bytes, len);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                bytes += n;
                len -= (size_t)n;
        }
        return 0;
}
