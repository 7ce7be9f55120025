// Package experiments runs the experiments that show overload control works, in package runtime/sim: the production cores under load, each
// scheme on the same arrivals, each experiment beside a control arm that must collapse.
//
// What an [Experiment] is, and how it is run and shown, is in bench/suite; here the arms are schemes, and the figures those of bench/simulate.
package experiments
