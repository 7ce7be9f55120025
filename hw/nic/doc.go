// Package nic reads what decides where a network interface puts its packets, and how soon: driver, queues, RSS, rings, coalescing, offloads,
// interrupts. It sets two things of it: the number of queues, and rules that steer a UDP port to a queue.
//
// It asks by the ethtool ioctl, by the netdev family of generic netlink, and in sysfs. Everything belongs to the network namespace of the
// calling thread, except sysfs, which shows the one that it was mounted in; so sysfs is believed about an interface only where it shows
// the same one.
//
// Reading needs no privilege. What a driver does not have and what could not be read are told apart, and neither is an error: see [Status].
package nic
