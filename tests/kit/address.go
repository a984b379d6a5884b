package kit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

const (
	firstPort  = 10_000 // below the ports that the kernel picks for listeners and callers
	blockPorts = 64
	portBlocks = 312
)

var ports struct {
	sync.Mutex
	blocks []net.Listener // listeners at the first port of each block
	given  int            // ports given out, over all blocks
}

// Address returns a TCP address on the loopback interface for a server that a test starts. Its port
// is one of Port.
func Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(Port())) }

// Ports returns n ports of Port.
func Ports(n int) (all []int) {
	for range n {
		all = append(all, Port())
	}
	return all
}

// Port returns a port for a server that a test starts, possibly later or in another process. The
// server can also be restarted at the same port. While this process runs, no other caller gets that
// port, not even in another test process, because each process reserves blocks of ports by listening
// on the first port of each block. The kernel gives these ports to nobody who lets it choose.
func Port() int {
	ports.Lock()
	defer ports.Unlock()
	for range 4 * portBlocks * blockPorts {
		const own = blockPorts - 1
		if ports.given == len(ports.blocks)*own && !holdBlock() {
			ports.given = 0 // only a process that runs for hours gets here
		}
		block := ports.blocks[ports.given/own].Addr().(*net.TCPAddr)
		port := block.Port + 1 + ports.given%own
		ports.given++
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	panic("no port of loopback is free")
}

// holdBlock reserves another block of ports. It returns false if all blocks are taken.
func holdBlock() bool {
	for _, b := range rand.Perm(portBlocks) {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+b*blockPorts)); err == nil {
			ports.blocks = append(ports.blocks, l)
			return true
		}
	}
	return false
}
