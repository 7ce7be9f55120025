// Package published holds the evaluation figures of the Breakwater paper (Cho et al., "Overload Control for µs-scale RPCs with
// Breakwater", OSDI 2020) as numbers: 4,905 points, read off the vector drawings of the paper, and of one slide of its talk (figure S7).
//
// Every point comes from coordinates, none from pixels: the centre of a marker, the top of a bar, the vertex of a path. Its
// reading error is about one step of the drawing's raster. It is not the spread of the experiment: the paper's own repetitions of one
// point differ by up to 1.5 % in goodput and half a percentage point in drops.
//
// What misleads in the figures themselves:
//   - "2x capacity" is nominal: 1x is 0.8 M/s in F6, 0.9x is 0.8 M/s in F4, 1.2x is 1.0 M/s, 2x is 1.6 M/s, and 5 M/s in F12.
//   - F9 a is throughput, not goodput. F9 panel b-offchart-lb has coordinates that the drawing program clamped: lower bounds, without an error.
//   - The first point of F10 was drawn from the run at 1.6 M/s, though the text says 1.0 M/s.
//   - F7 has one vertex per window of 20 ms, taken as the window's end. A reject delay of 0 means no reject in that window.
//   - Drop rates are of what reached the server; drops at the client are in no figure. Latencies of F12 are whole microseconds.
package published
