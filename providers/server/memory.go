package server

import (
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/florete/florete/internal/conns"
)

const (
	// lookAfter is the time after a request at which the process decides whether to return memory.
	lookAfter = 20 * time.Second

	// hardly is the amount that the watches of a large cluster allocate in that time. worth is the
	// amount that is worth a collection.
	hardly = 80 << 20
	worth  = 16 << 20
)

// memory returns memory to the kernel after many hosts called at once. Without it, the runtime
// would not collect garbage until the same amount is allocated again, and the stacks of waiting
// connections would keep their largest size. It does no work while there are no requests.
type memory struct {
	taken  func() uint64 // how much was ever allocated
	giveUp func()        // returns what is unused

	mu    sync.Mutex
	armed bool
	seen  uint64 // taken when it was looked at last
	kept  uint64 // taken when memory was returned last
}

// processMemory is the memory of this process. It has an effect only after TuneRuntime was called.
var processMemory = memory{taken: allocated, giveUp: func() {
	runtime.GC() // what pools have survives the first, and stacks become half as large with each
	debug.FreeOSMemory()
}}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// touch records a request.
func (m *memory) touch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.armed {
		m.armed = true
		time.AfterFunc(lookAfter, m.look)
	}
}

// look returns memory to the kernel once hardly any memory is allocated. Until then it schedules
// itself again.
func (m *memory) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.taken()
	if busy := now-m.seen > hardly; busy {
		m.seen = now
		time.AfterFunc(lookAfter, m.look)
		return
	}
	m.armed, m.seen = false, now
	if now-m.kept < worth {
		return
	}
	m.giveUp()
	m.kept = now
}

// connState implements http.Server.ConnState.
func connState(c net.Conn, to http.ConnState) {
	conns.State(c, to)
	if to == http.StateActive && tuned.Load() {
		processMemory.touch()
	}
}
