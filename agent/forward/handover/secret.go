package handover

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const (
	secretPrefix = "secret-"
	maxSecret    = 4096
)

// Secret returns the secret that an earlier process has kept under a name. If there is none, or if
// it has another length than fresh, Secret returns fresh and keeps it for later processes. Secrets
// are kept in memory only.
func (s *Store) Secret(name string, fresh []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept := s.secrets[name]; len(kept) == len(fresh) {
		return kept
	}
	if s.secrets == nil {
		s.secrets = map[string][]byte{}
	}
	s.secrets[name] = fresh
	f, err := secretFile(name, fresh)
	if err != nil {
		return fresh
	}
	defer f.Close()
	_ = Drop(f.Name())
	_ = Hold(f.Name(), f) // without systemd, the next process uses a fresh secret
	return fresh
}

// secretFile returns a file in memory with the given secret.
func secretFile(name string, secret []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), secretPrefix+name)
	if _, err := f.Write(secret); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func readSecret(f *os.File) []byte {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxSecret))
	if err != nil {
		return nil
	}
	return b
}
