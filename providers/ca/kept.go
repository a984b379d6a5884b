package ca

import (
	"io/fs"
	"os"
	"sync"
	"time"
)

// lookAgain is the interval at which Kept checks whether the files have changed. Without this
// interval, Kept would check them for each certificate that is issued.
const lookAgain = time.Second

// Kept is a CA whose certificate and private key can be replaced in their files while a process
// runs. It loads them again when the files change. Several goroutines may use it at the same time.
type Kept struct {
	Certificate, Key string

	mu     sync.Mutex
	looked time.Time
	seen   [2]fs.FileInfo
	last   *Authority
}

// Load returns the CA that is in the files. It looks for changes at most once a second, so the
// result can be up to a second old.
func (k *Kept) Load() (*Authority, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	began := time.Now()
	if k.last != nil && began.Sub(k.looked) < lookAgain {
		return k.last, nil
	}
	k.looked = time.Time{} // after an error, the next call reads the files again
	var now [2]fs.FileInfo
	for i, path := range []string{k.Certificate, k.Key} {
		var err error
		if now[i], err = os.Stat(path); err != nil {
			return nil, err
		}
	}
	if k.last != nil && same(k.seen[0], now[0]) && same(k.seen[1], now[1]) {
		k.looked = began
		return k.last, nil
	}
	a, err := Load(k.Certificate, k.Key)
	if err != nil {
		return nil, err
	}
	k.looked, k.seen, k.last = began, now, a
	return a, nil
}

// same reports whether two states of a file show that the file has not changed.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}
