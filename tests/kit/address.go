package kit

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Address is a TCP address on loopback for a server that starts later, in another process. Its port
// is below those that the kernel picks for listeners and callers, so it is free until then.
func Address() string {
	for {
		at := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if l, err := net.Listen("tcp", at); err == nil {
			l.Close()
			return at
		}
	}
}
