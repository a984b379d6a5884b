package server

import (
	"log/slog"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/tlog"
)

// Process is what a kind receives from its process.
type Process struct {
	Instance hostdir.Instance
	Dir      string // for what is this process's alone
	Store    store.Store
	Key      *sealedstore.Key
	Policies *Policies
	Audit    *Audit
	Log      *tlog.Log // of the audit rows
	Logger   *slog.Logger
}

// Section is a kind's section of the settings file of a provider host: a pointer to a
// struct. A string with the tag "want" has to be there, and the tag is what to write; the
// tag "path" marks those that are relative to the file.
type Section interface {
	// Kind makes the kind. What it needs from elsewhere it looks for when it runs.
	Kind(p Process) AnyKind
}
