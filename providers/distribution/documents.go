package distribution

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/server"
)

// get answers a node that fetches its documents.
func (d *Distribution) get(w http.ResponseWriter, r *http.Request) {
	a := d.server.Request(r)
	err := identify(a, r)
	if revision := d.revisions.now(); revision > 0 { // revision before the documents are read
		w.Header().Set(hostapi.HeaderRevision, strconv.FormatInt(revision, 10))
	}
	answer, err := a.Commit(r.Context(), err, func() (any, server.Change, error) {
		return d.read(r.Context(), a, r.PathValue("node"), r.Header.Get(hostapi.HeaderHas))
	})
	reply(w, answer, err)
}

// identify verifies which node fetches its documents. It also reads the serial of the node's
// manifest and the number of its revocation list.
func identify(a *server.Request, r *http.Request) error {
	if err := a.IdentifyNode(r); err != nil {
		return err
	}
	if text := r.URL.Query().Get("serial"); text != "" {
		var err error
		if a.Row.Serial, err = strconv.ParseInt(text, 10, 64); err != nil {
			return hostapi.Errorf(hostapi.CodeMalformed, "serial %q: not a number", text)
		}
	}
	return a.ReceiveList(r.Header)
}

// read decides about the request of a node for its documents. The argument has is the tag of the
// documents that the node already has.
func (d *Distribution) read(ctx context.Context, a *server.Request, node, has string) (any, server.Change, error) {
	if node != a.Caller.Name() {
		return nil, server.Change{}, hostapi.Errorf(hostapi.CodeNotGranted, "documents of node %q: for that node alone, requested by %s", node, a.Caller)
	}
	artifact, err := d.offer(ctx, a, has)
	if artifact.NotModified {
		return notModified(has), server.Change{Unrecorded: true}, err
	}
	return artifact, server.Change{Signed: true}, err
}

// offer returns the documents of a node, which are all of one version, and the revocation list. It
// leaves out documents and a list that the node already has.
func (d *Distribution) offer(ctx context.Context, a *server.Request, has string) (hostapi.Artifact, error) {
	if _, err := a.Granted(); err != nil {
		return hostapi.Artifact{}, err
	}
	newest, err := d.near.Revocations(ctx)
	if err != nil {
		return hostapi.Artifact{}, err
	}
	documents, same, err := d.near.Documents(ctx, a.Caller.Name(), has)
	switch {
	case errors.Is(err, archive.ErrRestored):
		err = hostapi.Errorf(hostapi.CodeMissing, "documents of %s: none are published here since its state was restored", a.Caller.Short())
	case errors.Is(err, archive.ErrNone), err == nil && !same && len(documents) == 0:
		err = hostapi.Errorf(hostapi.CodeMissing, "documents of %s: none are published here yet", a.Caller.Short())
	}
	if err != nil || a.List < 0 || newest.Number <= a.List {
		return hostapi.Artifact{Documents: documents, NotModified: same}, err
	}
	if same {
		documents = []hostapi.SignedDocument{}
	}
	return hostapi.Artifact{Documents: documents, Revocations: &newest.Signed}, nil
}

// notModified is the answer to a node that already has the newest documents. Its value is the tag
// of these documents.
type notModified string

// reply sends documents with their tag. It sends any other answer as server.Reply does.
func reply(w http.ResponseWriter, answer any, err error) {
	switch v := answer.(type) {
	case notModified:
		w.Header().Set(hostapi.HeaderTag, string(v))
		w.WriteHeader(http.StatusNotModified)
		return
	case hostapi.Artifact:
		if !v.Unchanged() {
			w.Header().Set(hostapi.HeaderTag, v.Tag())
		}
	}
	server.Reply(w, answer, err)
}
