package kit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

const (
	firstPort  = 10_000 // below those that the kernel picks for listeners and callers
	blockPorts = 64
	portBlocks = 312
)

var ports struct {
	sync.Mutex
	blocks []net.Listener // at the first port of each block
	given  int            // of all blocks
}

// Address is a TCP address on loopback for a server that starts later, in another process, and may
// be started again. No other address of this test process is the same, nor of those that run at the
// same time: each process holds the first port of a block whose other ports are its own.
func Address() string {
	ports.Lock()
	defer ports.Unlock()
	for range 4 * portBlocks * blockPorts {
		const own = blockPorts - 1
		if ports.given == len(ports.blocks)*own && !holdBlock() {
			ports.given = 0 // a process that has run for hours
		}
		block := ports.blocks[ports.given/own].Addr().(*net.TCPAddr)
		port := block.Port + 1 + ports.given%own
		ports.given++
		at := fmt.Sprintf("127.0.0.1:%d", port)
		if l, err := net.Listen("tcp", at); err == nil {
			l.Close()
			return at
		}
	}
	panic("no port of loopback is free")
}

// holdBlock reports whether a block could be had.
func holdBlock() bool {
	for _, b := range rand.Perm(portBlocks) {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+b*blockPorts)); err == nil {
			ports.blocks = append(ports.blocks, l)
			return true
		}
	}
	return false
}
