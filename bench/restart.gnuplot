# SPDX-License-Identifier: MIT
# data: seconds since the restart, percent of hits and queries upstream a second, each built-in then sardine;
# separated by tabs. out: the SVG file.
set terminal svg size 1000,380 background rgb 'white'
set output out
set datafile separator tab
set multiplot layout 1,2 margins 0.06,0.985,0.14,0.9 spacing 0.08
set grid ytics
set xlabel 'seconds since the restart'
set arrow from 0, graph 0 to 0, graph 1 nohead dashtype 2 linecolor rgb '#888888'
set key bottom left samplen 2
set title 'hits, percent'
set yrange [0:100]
plot data using 1:2 with linespoints linewidth 2 pointtype 7 pointsize 0.4 linecolor rgb '#bab0ac' title 'built-in cache', \
     data using 1:3 with linespoints linewidth 3 pointtype 7 pointsize 0.4 linecolor rgb '#4c78a8' title 'sardine with a snapshot'
unset key
set title 'queries upstream, a second'
set yrange [0:*]
plot data using 1:4 with linespoints linewidth 2 pointtype 7 pointsize 0.4 linecolor rgb '#bab0ac', \
     data using 1:5 with linespoints linewidth 3 pointtype 7 pointsize 0.4 linecolor rgb '#4c78a8'
unset multiplot
