// Package nic reads and sets what decides where a network interface puts its packets: the number of its queues. Everything
// belongs to the network namespace of the calling thread.
package nic
