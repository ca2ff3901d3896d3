# SPDX-License-Identifier: MIT
# data: blocks of lines, one block a phase: the names of the policies, then budget in MB and percents.
# titles: the names of the phases, quoted. n: number of policies. out: the SVG file. low, high: of all percents.
set terminal svg size 1200,480 background rgb 'white'
set output out
set multiplot layout 1,3 margins 0.06,0.98,0.24,0.92 spacing 0.04
set logscale x 2
set xtics 1,2
set yrange [low:high]
set xlabel 'budget, MB'
set grid ytics
set key autotitle columnhead noenhanced at screen 0.5,0.06 center maxrows 1 samplen 2
do for [phase = 0:2] {
        set title word(titles, phase + 1)
        if (phase == 0) { set ylabel 'misses of ordinary queries, percent' } else { unset ylabel; unset key }
        plot for [policy = 2:n + 1] data index phase using 1:policy with linespoints \
                linewidth (policy == 2 ? 3 : 1) pointtype 7 pointsize 0.5
}
unset multiplot
