package file

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// sentPrefix is the prefix of the keys in the state store under which the files that operators sent
// are stored.
const sentPrefix = "file/"

// sentLimit is the largest size of a file that an operator sends, in bytes. The store accepts 256
// KiB in one transaction.
const sentLimit = 128 << 10

// CodeSet and CodeUnset are the audit codes of rows about files that an operator sent or removed.
const (
	CodeSet   = "file-set"
	CodeUnset = "file-unset"
)

// File describes a file that an operator sends to the provider, for services. A request contains
// Ref and Content. An answer contains Ref, Sent and By.
type File struct {
	Ref     string        `json:"ref"`
	Content *string       `json:"content,omitempty"` // nil removes the file; absent in answers
	Sent    unixtime.Time `json:"sent,omitzero"`
	By      spiffe.ID     `json:"by,omitzero"`
}

// Sent is the answer to GET /v1/files.
type Sent struct {
	Files []File `json:"files"` // sorted by name
}

// record is the stored record of a file that an operator sent. The content is sealed.
type record struct {
	Sent    unixtime.Time `json:"sent"`
	By      spiffe.ID     `json:"by"`
	Content []byte        `json:"content"`
}

// Run answers requests of operators about files until ctx ends. The requests arrive through the
// process of kind "config", which serves the operators' API. Requests of hosts are answered even if
// Run is not called.
func (f Files) Run(ctx context.Context, ready func()) error {
	ready() // answers to hosts need none of this
	announced.RunOperators(ctx, f.Relay,
		announced.Endpoint{Method: "GET", Path: "/v1/files", Access: document.AccessRead, Answer: f.list},
		announced.Endpoint{Method: "POST", Path: "/v1/files", Access: document.AccessWrite, Answer: f.receive})
	return nil
}

// sent returns the content of the file that an operator sent under a name. The second result is
// false if there is no such file.
func (f Files) sent(ctx context.Context, ref string) (string, bool, error) {
	var r record
	modified, err := store.Load(ctx, f.Store, sentPrefix+ref, &r)
	if err != nil || modified == 0 {
		return "", false, err
	}
	content, err := f.Key.Open(sentPrefix+ref, r.Content)
	return string(content), err == nil, err
}

// list returns the files that operators sent, without their contents.
func (f Files) list(c *announced.Call) (any, error) {
	all := Sent{[]File{}}
	for e, err := range store.All(c.R.Context(), f.Store, sentPrefix, "", store.MaxOps) {
		if err != nil {
			return nil, err
		}
		var r record
		if err := json.Unmarshal(e.Value, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Key, err)
		}
		all.Files = append(all.Files, File{Ref: strings.TrimPrefix(e.Key, sentPrefix), Sent: r.Sent, By: r.By})
	}
	return all, nil
}

// receive stores or removes a file for an operator, and writes the audit row. If the same content
// is sent again, only the sender and the time change.
func (f Files) receive(c *announced.Call) (any, error) {
	var sent File
	c.Row.Code = CodeSet
	if err := c.Body(6*sentLimit+4<<10, &sent); err != nil { // JSON may use six bytes for one
		return nil, err
	}
	if err := check(sent, c.Policy); err != nil {
		return nil, err
	}
	sent.Sent, sent.By = unixtime.Of(c.Row.Time), announced.From(c.R.Context()).ID
	key := sentPrefix + sent.Ref
	op := store.Delete(key)
	c.Row.Message = fmt.Sprintf("file %q is no longer there as it was sent", sent.Ref)
	if sent.Content == nil {
		c.Row.Code = CodeUnset
	} else {
		value, err := json.Marshal(record{sent.Sent, sent.By, f.Key.Seal(key, []byte(*sent.Content))})
		if err != nil {
			return nil, err
		}
		op = store.Put(key, value)
		c.Row.Message = fmt.Sprintf("file %q was sent", sent.Ref)
	}
	c.Row.Outcome = server.Granted
	c.Row.Detail = map[string]string{"ref": sent.Ref, "host": c.Policy.Host}
	sent.Content = nil
	if _, err := f.Store.Commit(c.R.Context(), store.Txn{Then: []store.Op{op, c.Row.Op()}}); err != nil {
		return nil, err
	}
	c.Row.Log(c.R.Context(), f.Relay.Logger)
	return sent, nil
}

// check refuses a file that the policy grants to no host, and a file that no host could receive.
func check(sent File, p document.Policy) error {
	if !fs.ValidPath(sent.Ref) || sent.Ref == "." || len(sent.Ref) > 255 {
		return hostapi.Errorf(hostapi.CodeMalformed, "ref %.64q: want the name of a file, as in services.<name>.files.<file>.ref", sent.Ref)
	}
	if sent.Content == nil {
		return nil
	}
	granted := slices.ContainsFunc(p.Grants, func(g document.Grant) bool {
		var r Request
		return g.Kind == Name && strictjson.Decode(g.Request, &r) == nil && r.Ref == sent.Ref
	})
	switch {
	case !granted:
		return hostapi.Errorf(hostapi.CodeMissingInvalid, "file %q: no service in the policy of this provider has it: declare it in services.<name>.files and publish first", sent.Ref)
	case len(*sent.Content) > sentLimit:
		return hostapi.Errorf(hostapi.CodeMalformed, "file %q: %d bytes, want at most %d: put it into the provider's directory of files", sent.Ref, len(*sent.Content), sentLimit)
	case !utf8.ValidString(*sent.Content):
		return hostapi.Errorf(hostapi.CodeMalformed, "file %q: not text (UTF-8): send it in base64, and decode it where it is used", sent.Ref)
	}
	return nil
}

// Reseal encrypts the stored files of operators again, with the newest secret of the sealing key.
// Files that this secret has encrypted already are left unchanged.
func (f Files) Reseal(ctx context.Context) error {
	return sealedstore.Walk(ctx, f.Store, sentPrefix, func(at string, value []byte) ([]byte, bool, error) {
		var r record
		if err := json.Unmarshal(value, &r); err != nil {
			return nil, false, fmt.Errorf("%s: %w", at, err)
		}
		content, changed, err := f.Key.Reseal(at, r.Content)
		if err != nil || !changed {
			return value, false, err
		}
		r.Content = content
		value, err = json.Marshal(r)
		return value, true, err
	})
}
