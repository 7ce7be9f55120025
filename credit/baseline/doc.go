// Package baseline has the published schemes of overload control behind the interfaces of ours, so that an experiment compares
// them with one switch: [Lookup] makes a [Scheme] by its name. A scheme is a controller at the server and, for some, a policy
// at each client.
//
// What is not said elsewhere is from the authors' artifact of Breakwater (Cho et al., OSDI 2020), which ran DAGOR and SEDA too. Where the
// published numbers depend on the work, they are those of 1, 10 and 100 us of service, of which the nearest is taken; those that are delays
// scale with the SLO, so that at the published one, 10 (service + RTT) with an RTT of 10 us, they are exactly the published ones.
//
//	scheme               server                       client                      source
//	none                 all slots, open door         -                           the control arm
//	breakwater-paper     pool per RTT, door           -                           OSDI 2020, sections 3 to 5
//	breakwater-artifact  pool per 10 us, door, floor  queue of 16, expiry 10 us   its artifact, which made the figures
//	stillwater           pool per RTT, door, floor    -                           package credit: what it changes and why
//	dagor                cut of priorities            drops above the cut seen    Zhou et al., SoCC 2018; the artifact's settings
//	seda                 -                            token bucket, rate by p99   Welsh and Culler, USITS 2003; the artifact's settings
//	codel                drops at the dequeue         -                           RFC 8289; target and interval are ours
//	window               -                            AIMD window                 OSDI 2020, figure 1; the law is TCP's, the rest ours
//	protego              pool by efficiency, door     -                           Cho et al., NSDI 2023
//
//	scheme               parameters
//	breakwater-paper     alpha 0.1 %, beta 2 %, target 0.4 SLO, door at 2 targets
//	breakwater-artifact  the same alpha and beta; target and door 45/90, 80/160, 500/1000 us for 1, 10, 100 us of service; 64 slots
//	dagor                d = 0.8 d + 0.2 delay every 10 us; every 1 ms or 2,000 requests the cut times 0.95 or plus 1.28, within 1..127, from 32;
//	                     threshold 20/30/30, 80/70/60, 500 us (bimodal, exponential, constant) for 1, 10, 100 us
//	seda                 cur = 0.7 cur + 0.3 p99 every 100 replies or 1 ms; target 50, 80, 720 us, adj_i 120, 40, 10, adj_d 1.04, 1.04, 1.3;
//	                     at least 2/s, bucket 4, expiry 100 us; adj_i is for 1,000 clients and goes with 1/clients
//	codel                target 0.2 SLO, interval 0.1 SLO
//	window               halved by a latency above the SLO, a rejection or a loss, else + 1/window; at least 1, at most the slots
//	protego              every 4 end-to-end RTT; t_e 10 %, t_d 100 %, a 0.1 % of the sessions and at least 1, d 2 %; door at 0.8 SLO
//
// In the paper of Breakwater c_x are a client's unused credits; here all that count credits use the windows of package credit, work in
// service included, as the artifact does. Protego rejects where a request would wait for a lock; we see no locks, so its drops are those of
// the door; and an interval without a request, which would shrink its pool to nothing, is left out of its law.
//
// [Tuning] departs from these settings, and switches parts of the laws with credits off, for sweeps and ablations. Without speculation, C_oc is 0 and there is no
// floor: clients ask for each credit (credit.Config.Asking, client.Limits.Ask), and so may wait three round trips longer.
//
// Nothing here reads a clock or draws an unseeded random number. A controller and a policy have one owner each; a Scheme may be used by
// several at once.
package baseline
