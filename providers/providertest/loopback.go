package providertest

import (
	"fmt"
	"os"
	"sync/atomic"
)

var loopbacks atomic.Uint32

// Loopback is an address to listen on, again after a restart too: the IP is this
// process's own, and the port none that the kernel hands out.
func Loopback() string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d:%d", 128|byte(pid>>16), byte(pid>>8), byte(pid), 4000+loopbacks.Add(1))
}
