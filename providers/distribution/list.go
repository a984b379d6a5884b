package distribution

import (
	"encoding/json"
	"log/slog"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// List returns the source from which the process of a kind reads the newest revocation list: the store of kind
// config. It is nil for processes of other kinds whose engine has no tree of that. The process of
// kind config leaves each list in file for those.
func List(kind string, s store.Store, file string, log *slog.Logger) *server.ListSource {
	l := &server.ListSource{Key: archive.RevocationsKey, Decode: archive.DecodeRevocations}
	config, shared := store.Sibling(s, Name)
	l.Shared = shared
	switch {
	case kind == Name:
		l.Store = s
		if !shared {
			l.Taken = leave(file, log)
		}
	case shared:
		l.Store, l.Tree = config, Name
	default:
		return nil
	}
	return l
}

// leave writes each list for all of this host to read: it is no secret, and signed. None is left
// over from before: a reader would take it at most for what it is, an older one.
func leave(file string, log *slog.Logger) func(*trust.Revocations) {
	return func(list *trust.Revocations) {
		if list == nil {
			return
		}
		b, err := json.Marshal(list.AsSigned())
		if err == nil {
			err = atomicfile.File(file, b, 0o644)
		}
		if err != nil {
			log.Error("the processes of other kinds learn of the newest revocation list by this host's activation alone", "error", err)
		}
	}
}
