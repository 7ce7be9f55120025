// Command storm is E3 of bench/toolbox, the metastable retry storm, for real over AF_XDP on a veth pair: a server has a fifth of its capacity for ten seconds, and its callers give an
// attempt a second and a call four attempts. Without control nothing is ever answered in time again; each of the defences alone ends that, and so does what the runtime does by itself.
//
// It takes six arms at 0.8 of the capacity, five and a half minutes; -full adds the control arm and ours at less.
package main
