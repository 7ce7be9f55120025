package udpport

// FD is the socket, for tests that set options or play the kernel.
func FD(p *Port) int { return p.fd }

// SendBatch is how many packets one system call sends.
const SendBatch = sendBatch
