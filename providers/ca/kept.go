package ca

import (
	"io/fs"
	"os"
	"sync"
)

// Kept is an authority in two files, which is read anew where one of them is another than the
// last time.
type Kept struct {
	Certificate, Key string

	mu   sync.Mutex
	seen [2]fs.FileInfo
	last *Authority
}

// Load is the authority that is in the files now.
func (k *Kept) Load() (*Authority, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var now [2]fs.FileInfo
	for i, path := range []string{k.Certificate, k.Key} {
		var err error
		if now[i], err = os.Stat(path); err != nil {
			return nil, err
		}
	}
	if k.last != nil && same(k.seen[0], now[0]) && same(k.seen[1], now[1]) {
		return k.last, nil
	}
	a, err := Load(k.Certificate, k.Key)
	if err != nil {
		return nil, err
	}
	k.seen, k.last = now, a
	return a, nil
}

// same is whether a file is the one that it was, unchanged.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}
