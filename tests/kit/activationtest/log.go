package activationtest

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/merkle/testonly"
	"golang.org/x/mod/sumdb/note"

	"github.com/florete/florete/internal/hostapi"
)

// auditLog is the audit log of a provider.
type auditLog struct {
	signer note.Signer
	key    string
	tree   *testonly.Tree
	fault  string
	hide   func(kind string) *hostapi.Error
}

// SetLog replaces the rows of the provider's audit log. A fault that is not empty is reported to
// hosts with each checkpoint. All logs of a provider are signed by the same key. Before the first
// call, the provider has no audit log, like a provider of an older release.
func (p *Provider) SetLog(fault string, rows ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.log.signer == nil {
		private, public, err := note.GenerateKey(rand.Reader, "demo.flor/cert/forge")
		p.cluster.must(err)
		p.log.signer, err = note.NewSigner(private)
		p.cluster.must(err)
		p.log.key = public
	}
	p.log.fault, p.log.tree = fault, testonly.New(rfc6962.DefaultHasher)
	for _, r := range rows {
		p.log.tree.AppendData([]byte(r))
	}
}

// HideLog makes the provider answer requests for its audit logs with the error that hide returns for
// the kind of the log. If hide panics, the provider closes the connection without an answer. A nil
// hide makes the logs available again.
func (p *Provider) HideLog(hide func(kind string) *hostapi.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log.hide = hide
}

func (p *Provider) checkpoint(w http.ResponseWriter, r *http.Request) {
	proof, err := base64.StdEncoding.DecodeString(r.Header.Get(hostapi.HeaderDevice))
	p.cluster.must(err)
	if e := p.authenticate(r.TLS, hostapi.Request{Device: string(proof)}); e != nil {
		reply(w, nil, e)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.log
	if l.hide != nil {
		kind, _ := path.Split(r.URL.Path)
		reply(w, nil, l.hide(strings.Trim(kind, "/")))
		return
	}
	if l.signer == nil {
		reply(w, nil, hostapi.Errorf(hostapi.CodeUnknownMethod, "%s: no such endpoint", r.URL.Path))
		return
	}
	from, err := strconv.ParseUint(r.URL.Query().Get("from"), 10, 64)
	p.cluster.must(err)
	text, err := note.Sign(&note.Note{Text: string(log.Checkpoint{Origin: l.signer.Name(), Size: l.tree.Size(), Hash: l.tree.Hash()}.Marshal())}, l.signer)
	p.cluster.must(err)
	c := hostapi.Checkpoint{Key: l.key, Checkpoint: string(text), Fault: l.fault}
	if from > 0 && from < l.tree.Size() {
		c.Proof, err = l.tree.ConsistencyProof(from, l.tree.Size())
		p.cluster.must(err)
	}
	reply(w, c, nil)
}

// LoseState makes the provider forget all answers, all rotations and its audit log, like a provider
// whose disk was lost.
func (p *Provider) LoseState() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.answers)
	clear(p.rotated)
	p.log = auditLog{}
}
