# SPDX-License-Identifier: MIT
# data: a line a rung: its name, bytes counted, in jemalloc's classes, resident, the seeds' figure, thousand inserts a
# second, ns a lookup; separated by tabs. out: the SVG file.
set terminal svg size 1280,380 background rgb 'white'
set output out
set datafile separator tab
set datafile missing '?'
set multiplot layout 1,3 margins 0.05,0.985,0.08,0.9 spacing 0.055
set style fill solid 0.85 noborder
set boxwidth 0.25
set grid ytics
set xtics scale 0
set yrange [0:*]
set xrange [-0.6:6.6]
set key top right samplen 1.5
set title 'bytes an entry'
plot data using ($0 - 0.26):2 with boxes linecolor rgb '#4c78a8' title 'counted', \
     data using 0:3:xtic(1) with boxes linecolor rgb '#9ecae9' title "with jemalloc's size classes", \
     data using ($0 + 0.26):4 with boxes linecolor rgb '#bab0ac' title 'resident', \
     data using ($0 - 0.26):5 with points pointtype 9 pointsize 0.9 linecolor rgb '#e45756' title "the seeds' own"
set boxwidth 0.6
unset key
set title 'inserts, thousand a second'
plot data using 0:6:xtic(1) with boxes linecolor rgb '#54a24b'
set title 'lookup, ns'
plot data using 0:7:xtic(1) with boxes linecolor rgb '#f58518'
unset multiplot
