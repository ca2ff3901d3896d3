# SPDX-License-Identifier: MIT
# data: a line a server: its name, bytes an entry, hits a second, upstream queries per 1000; separated by tabs. n: lines.
# out: the SVG file.
set terminal svg size 1280,360 background rgb 'white'
set output out
set datafile separator tab
set datafile missing '?'
set multiplot layout 1,3 margins 0.17,0.985,0.1,0.88 spacing 0.02
set style fill solid 0.85 noborder
set grid xtics
set xrange [0:*]
set yrange [n - 0.4:-0.6]
set boxwidth 0.7
unset key
set title 'bytes an entry'
plot data using 2:0:(0):2:($0 - 0.35):($0 + 0.35):ytic(1) with boxxyerror linecolor rgb '#4c78a8'
set format y ''
set title 'hits, thousand a second'
plot data using ($3 / 1000):0:(0):($3 / 1000):($0 - 0.35):($0 + 0.35) with boxxyerror linecolor rgb '#54a24b'
set title 'under pressure: upstream queries per 1000'
plot data using 4:0:(0):4:($0 - 0.35):($0 + 0.35) with boxxyerror linecolor rgb '#f58518'
unset multiplot
