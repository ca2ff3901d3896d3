# SPDX-License-Identifier: MIT
# data: blocks of lines, one block a phase: the names of the policies, then budget in MB and percents.
# titles: the names of the phases, quoted. n: number of policies. out: the SVG file.
set terminal svg size 1200,450 background rgb 'white'
set output out
set multiplot layout 1,3
set logscale x 2
set xtics 2
set xlabel 'budget, MB'
set grid ytics
set key autotitle columnhead noenhanced top right
do for [phase = 0:2] {
        set title word(titles, phase + 1)
        if (phase == 0) { set ylabel 'misses of ordinary queries, percent' } else { unset ylabel; unset key }
        plot for [policy = 2:n + 1] data index phase using 1:policy with linespoints \
                linewidth (policy == 2 ? 3 : 1) pointtype 7 pointsize 0.5
}
unset multiplot
