package kit

import (
	"fmt"
	"math/rand/v2"
	"net"
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

// Address returns a TCP address on the loopback interface for a server that a test starts, possibly
// later or in another process. The server can also be restarted at the same address. While this
// process runs, no other caller gets that address, not even in another test process, because each
// process reserves blocks of ports by listening on the first port of each block.
func Address() string {
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
		at := fmt.Sprintf("127.0.0.1:%d", port)
		if l, err := net.Listen("tcp", at); err == nil {
			l.Close()
			return at
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
