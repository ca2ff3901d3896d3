# SPDX-License-Identifier: MIT
# sizes: a line a size: label, and for each of memory limit, a batch, a lookup, dnsdist's class: ns; then for library
# and dnsdist's class: bytes an entry, inserts a second first and again (thousands). scale: a line a size: entries, bytes,
# ns a lookup; '' for none. out: the SVG file. `?` is missing.
set terminal svg size 1280,440 background rgb 'white'
set output out
set datafile separator tab
set datafile missing '?'
set multiplot layout 1,4 margins 0.045,0.985,0.36,0.92 spacing 0.055
set style fill solid 0.85 noborder
set style data histogram
set style histogram clustered gap 1
set grid ytics
set yrange [0:*]
set xtics scale 0
set key at graph 0.5,-0.12 center top maxrows 4 samplen 1.5
set title 'random lookups, ns'
plot sizes using 2:xtic(1) title 'memory limit' linecolor rgb '#bab0ac', \
     sizes using 3 title 'sardine, in batches' linecolor rgb '#9ecae9', \
     sizes using 4 title 'sardine' linecolor rgb '#4c78a8', \
     sizes using 5 title "dnsdist's class" linecolor rgb '#f58518'
set title 'bytes an entry'
plot sizes using 6:xtic(1) title 'sardine' linecolor rgb '#4c78a8', \
     sizes using 7 title "dnsdist's class" linecolor rgb '#f58518'
set title 'look up, miss, insert: thousand a second'
plot sizes using 8:xtic(1) title 'sardine, new memory' linecolor rgb '#9ecae9', \
     sizes using 9 title 'sardine' linecolor rgb '#4c78a8', \
     sizes using 10 title "dnsdist's class, new memory" linecolor rgb '#ffbf79', \
     sizes using 11 title "dnsdist's class" linecolor rgb '#f58518'
if (strlen(scale) > 0) {
        set title 'one cache that grows, by entries'
        set logscale x 10
        set xtics ('1 M' 1e6, '10 M' 1e7, '100 M' 1e8)
        set xrange [7e5:2e8]
        plot scale using 1:3 with linespoints linewidth 2 pointtype 7 linecolor rgb '#4c78a8' title 'ns a lookup', \
             scale using 1:2 with linespoints linewidth 2 pointtype 7 linecolor rgb '#54a24b' title 'bytes an entry'
}
unset multiplot
