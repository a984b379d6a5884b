package distribution

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

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

// offer returns the documents of a node, which are all of one version, and the revocation list. It
// leaves out documents and a list that the node already has, and access grants that it has received.
func (d *Distribution) offer(ctx context.Context, a *server.Request, has, received string) (hostapi.Artifact, error) {
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
	artifact := hostapi.Artifact{Documents: documents, NotModified: same}
	if err != nil {
		return artifact, err
	}
	if a.List >= 0 && newest.Number > a.List {
		artifact.Revocations = &newest.Signed
	}
	if artifact.Grants, err = d.grants(ctx, a, received); err != nil {
		return hostapi.Artifact{}, err
	}
	if same && (artifact.Revocations != nil || artifact.Grants != nil) {
		artifact.Documents, artifact.NotModified = []hostapi.SignedDocument{}, false
	}
	return artifact, nil
}

// grants returns the access grants of a node, or nil if they are those that the node has received
// last. Their tag is in the header of the request, which is empty if the node has no use for grants.
func (d *Distribution) grants(ctx context.Context, a *server.Request, received string) (*hostapi.Grants, error) {
	if received == "" {
		return nil, nil
	}
	access, err := d.near.Access(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	grants := hostapi.Grants(access.Of(a.Caller.Name(), d.server.Policies.Newest().Requests))
	if grants.Tag() == received {
		return nil, nil
	}
	return &grants, nil
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
