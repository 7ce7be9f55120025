// Package asavie puts github.com/asavie/xdp v0.3.3 behind the methods that a port needs of package xsk's Queue: a second implementation, by
// other people, to hold ours against. Whoever does not import it does not link that module.
//
// Of that module only the Socket is used. Its Program detaches whatever XDP program the interface has, whoever attached it, so it has no place
// here: packets come by a program of the caller's own.
//
// # What it cannot do
//
//	                             package xsk              here
//	several queues               on one UMEM              refused: its sockets do not share a UMEM
//	a queue anew, in a process   any number of times      refused: its rings stay mapped, and the kernel keeps the socket with them
//	headroom of one's own        yes                      refused
//	other machines than amd64    yes                      refused: it loads and stores ring indices without barriers
//	kick                         as the kernel asks       one sendto each time: it does not know the need-wakeup flag
//	errors of a kick             returned                 it panics; the panic is caught and becomes the same error
//	errors of Open               of the kernel            it keeps their text; they are recognised by it
//	packets dropped in a kick    counted                  not seen: it swallows EBUSY
//	which frames were sent       read off the ring        it says how many; which, by a scan of all frames when none is free
//	wrong entries on a ring      refused and counted      on the RX ring the same; an address outside the UMEM panics in it
//	the arrival stamp            Stamp                    no call for metadata; Stamp reads the 8 bytes through a descriptor of them
//	closing on exec              at once                  a moment after it was opened, since it does not ask for it
//	a failed Open                leaves nothing           leaves the mapped rings, about 100 KiB, until the process ends; a busy queue is
//	                                                      tried again 20 times at most
//	Close                        gives the queue back     the queue is free when the process ends
//
// What remains is one Queue a NIC queue and process, and it passes the tests of package xsk/xsktest/contract, as ours does.
package asavie
