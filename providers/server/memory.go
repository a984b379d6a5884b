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
	// lookAfter is the time after a request at which it is seen whether memory is to be returned.
	lookAfter = 20 * time.Second

	// hardly is the amount allocated in that time where nothing but watches of a large cluster goes on,
	// and worth is how much of it is worth collecting.
	hardly = 80 << 20
	worth  = 16 << 20
)

// memory returns what hosts that came at once took to the kernel, when that is over. The runtime by
// itself collects nothing before as much again was allocated, and stacks of connections that wait
// are as large as what they did first. Nothing runs where there are no requests.
type memory struct {
	taken  func() uint64 // how much was ever allocated
	giveUp func()        // returns what is unused

	mu    sync.Mutex
	armed bool
	seen  uint64 // taken when it was looked at last
	kept  uint64 // taken when memory was returned last
}

// processMemory is this process's, since TuneRuntime.
var processMemory = memory{taken: allocated, giveUp: func() {
	runtime.GC() // what pools have survives the first, and stacks become half as large with each
	debug.FreeOSMemory()
}}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// touch notes a request.
func (m *memory) touch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.armed {
		m.armed = true
		time.AfterFunc(lookAfter, m.look)
	}
}

// look returns memory once hardly anything is allocated, and is called again until then.
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

// connState is http.Server.ConnState.
func connState(c net.Conn, to http.ConnState) {
	conns.State(c, to)
	if to == http.StateActive && tuned.Load() {
		processMemory.touch()
	}
}
