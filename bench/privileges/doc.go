// Command privileges compares a server that runs as root with a program of its own and one that runs as nobody, with CAP_NET_RAW and no other
// capability, on a program that root has pinned: by 64-byte echoes in a closed loop over AF_XDP.
//
// That nobody has nothing else is read from /proc for each of its threads, before and after the load.
package main
