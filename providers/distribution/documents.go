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
		return d.read(r.Context(), a, r.PathValue("node"), r.Header)
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

// read decides about the request of a node for its documents. The header contains the tags of what
// the node already has.
func (d *Distribution) read(ctx context.Context, a *server.Request, node string, header http.Header) (any, server.Change, error) {
	if node != a.Caller.Name() {
		return nil, server.Change{}, hostapi.Errorf(hostapi.CodeNotGranted, "documents of node %q: for that node alone, requested by %s", node, a.Caller)
	}
	has := header.Get(hostapi.HeaderHas)
	artifact, err := d.offer(ctx, a, has, header.Get(hostapi.HeaderGrants))
	if artifact.NotModified {
		return notModified(has), server.Change{Unrecorded: true}, err
	}
	return artifact, server.Change{Signed: true}, err
}

// offer returns what is new for a node that has the documents and the access grants with the given
// tags.
func (d *Distribution) offer(ctx context.Context, a *server.Request, documents, grants string) (hostapi.Artifact, error) {
	if _, err := a.Granted(); err != nil {
		return hostapi.Artifact{}, err
	}
	has := archive.Has{Documents: documents, List: a.List, Grants: grants}
	artifact, err := d.near.Offer(ctx, a.Caller.Name(), has, d.server.Policies.Newest().Requests)
	switch {
	case errors.Is(err, archive.ErrRestored):
		err = hostapi.Errorf(hostapi.CodeMissing, "documents of %s: none are published here since its state was restored", a.Caller.Short())
	case errors.Is(err, archive.ErrNone):
		err = hostapi.Errorf(hostapi.CodeMissing, "documents of %s: none are published here yet", a.Caller.Short())
	}
	return artifact, err
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
