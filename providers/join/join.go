// Package join keeps a cluster's join tokens and join requests in the state of kind "config":
//
//	config/token/<hash>   a token, by the hash of its public key
//	config/join/<host>    the last join request of a host
//
// A device with a valid token makes a request, which an operator approves or rejects:
//
//	pending ── approve, signed by an operator ──▶ approved ── its key is revoked ──▶ revoked
//	   └────── reject ──▶ rejected ── another token ──▶ pending
//
// If the token carries an operator's grant, the request is approved at once, and the device signs
// the admission with the token's key. Nothing here is secret, and nothing here admits a device:
// providers of certificates verify the admission.
package join

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// These are the key prefixes of join tokens and join requests.
const (
	TokenPrefix   = "config/token/"
	RequestPrefix = "config/join/"
)

// Token is the record of a join token, which an operator creates for new devices. A device with the
// token can ask to become one of the hosts that match Hosts. Left is the number of times that the
// token can still be used.
type Token struct {
	ID      string        `json:"id"`    // hostapi.TokenID
	Hosts   string        `json:"hosts"` // a name, or a pattern of path.Match
	Uses    int           `json:"uses"`
	Left    int           `json:"left"`
	By      string        `json:"by"`
	Created unixtime.Time `json:"created"`
	Until   unixtime.Time `json:"until"`
	Revoked unixtime.Time `json:"revoked,omitzero"`

	// Grant lets the holder of the token admit one device as one host. If there is no grant, an
	// operator decides about each request.
	Grant *trust.SignedGrant `json:"grant,omitempty"`
}

// Request is the last request of a device to become a certain host, with the decision about it.
type Request struct {
	Host      string            `json:"host"`
	Device    string            `json:"device"` // public key, in authorized_keys form
	Facts     hostreport.Facts  `json:"facts"`
	From      string            `json:"from"`  // network address
	Token     string            `json:"token"` // ID of the token in the request
	State     hostapi.JoinState `json:"state"`
	Requested unixtime.Time     `json:"requested"`
	Decided   unixtime.Time     `json:"decided,omitzero"`
	By        string            `json:"by,omitempty"` // operator who decided

	Admission *trust.SignedAdmission `json:"admission,omitempty"`
	Grant     *trust.SignedGrant     `json:"grant,omitempty"`
}

// Fingerprint returns the fingerprint of the device's public key in the form SHA256:…, or "no key"
// if Device is not a valid key. It is computed from Device at each call.
func (r Request) Fingerprint() string {
	key, err := r.Key()
	if err != nil {
		return "no key"
	}
	return ssh.FingerprintSHA256(key)
}

// Key parses the device's public key in Device. It returns an error if Device is not exactly one
// key in the form of authorized_keys, without a comment.
func (r Request) Key() (ssh.PublicKey, error) {
	key, err := hostapi.ParseHostKey(r.Device)
	if err != nil {
		return nil, fmt.Errorf("device key of %.64q: %w", r.Host, err)
	}
	if is := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))); is != r.Device {
		return nil, fmt.Errorf("device key of %.64q: found more than a key, want %s", r.Host, is)
	}
	return key, nil
}

// put adds a write of a value to a decision. The write takes effect only if the key was last
// changed at the revision given by modified.
func put(d *server.Decision, key string, modified int64, v any) error {
	b, err := json.Marshal(v)
	d.If = append(d.If, store.Cond{Key: key, Modified: modified})
	d.Then = append(d.Then, store.Put(key, b))
	return err
}

// revoked returns an error if the node or the device is on the revocation list.
func (r Request) revoked(node spiffe.ID, list *trust.Revocations) error {
	if err := list.CheckID(node); err != nil {
		return err
	}
	return list.CheckKey(r.Fingerprint())
}

// Standing returns the current state of the request, with regard to later revocations. An approved
// request counts as revoked if the revocation list names the node or the device. The list may be
// nil.
func (r Request) Standing(node spiffe.ID, list *trust.Revocations) hostapi.JoinState {
	if r.State == hostapi.JoinApproved && r.revoked(node, list) != nil {
		return hostapi.JoinRevoked
	}
	return r.State
}

// Receive handles the request of a device to become a host. A new request is recorded, and uses the
// token once. A repeated request has no effect, and Receive returns the state of the first. Receive
// itself changes nothing: the caller commits the changes in the decision d.
func Receive(ctx context.Context, s store.Store, c server.Call, j hostapi.Join, from string) (a hostapi.Joined, d server.Decision, err error) {
	is := Request{
		Host: c.Caller.Name(), Device: j.Device, From: from,
		Token: hostapi.TokenID(j.Token), State: hostapi.JoinPending, Requested: unixtime.Of(c.Now),
	}
	// flor join and activation may send the same request at once. The token is read before the
	// request, so that a token which the other has used up comes with the request that it recorded.
	t, err := findToken(ctx, s, is.Token)
	if err != nil {
		return a, d, err
	}
	var was Request
	at := RequestPrefix + is.Host
	modified, err := store.Load(ctx, s, at, &was)
	if err != nil {
		return a, d, err
	}
	if err := is.revoked(c.Caller, c.Revoked); err != nil {
		return hostapi.Joined{State: hostapi.JoinRevoked, Message: err.Error()}, d, nil
	}
	if was.Device == is.Device && (was.State != hostapi.JoinRejected || j.Token == "" || was.Token == is.Token) {
		return was.answer(), d, nil
	}
	if err := strictjson.Decode(j.Facts, &is.Facts); err != nil {
		return a, d, hostapi.Errorf(hostapi.CodeMalformed, "facts: %v", err)
	}
	if err := t.use(c, j.Token, &is, &d); err != nil {
		return a, d, err
	}
	if err := was.giveWay(c); err != nil { // only the holder of a valid token learns this
		return a, d, err
	}
	d.Detail = map[string]string{"device": is.Fingerprint(), "token": is.Token, "state": string(is.State)}
	return is.answer(), d, put(&d, at, modified, is)
}

// giveWay refuses the request of another device as long as the device of this request may be the
// host.
func (r Request) giveWay(c server.Call) error {
	if r.State == hostapi.JoinPending && r.Device != "" {
		return hostapi.Errorf(hostapi.CodeJoin, "another device, with key %s, waits to be admitted as %s: florctl join reject %s, if that is the wrong one", r.Fingerprint(), c.Caller, r.Host)
	}
	if r.State == hostapi.JoinApproved && r.revoked(c.Caller, c.Revoked) == nil {
		return hostapi.Errorf(hostapi.CodeJoin, "the device with key %s is %s: florctl revoke --host-key %[1]s, if this one replaces it", r.Fingerprint(), c.Caller)
	}
	return nil
}

// storedToken is a token as it was read from the store. Its modified is zero if there is none.
type storedToken struct {
	Token
	modified int64
}

func findToken(ctx context.Context, s store.Store, id string) (t storedToken, err error) {
	t.modified, err = store.Load(ctx, s, TokenPrefix+id, &t.Token)
	return t, err
}

// use counts one use of the token for a request. It returns an error if the token cannot be used.
func (t storedToken) use(c server.Call, public string, r *Request, d *server.Decision) error {
	refuse := func(format string, args ...any) error {
		return hostapi.Errorf(hostapi.CodeToken, "join request of %s: "+format+": florctl join token create --host %s", append(append([]any{c.Caller}, args...), r.Host)...)
	}
	if public == "" {
		return refuse("no join token")
	}
	name := r.Token[:16]
	fits, _ := path.Match(t.Hosts, r.Host)
	switch {
	case t.modified == 0:
		return refuse("join token %s is unknown here", name)
	case !t.Revoked.IsZero():
		return refuse("join token %s was revoked", name)
	case c.Now.After(t.Until.Time):
		return refuse("join token %s expired at %s", name, t.Until.UTC().Format(time.RFC3339))
	case !fits:
		return refuse("join token %s is for %q", name, t.Hosts)
	case t.Left < 1:
		return refuse("join token %s has no uses left, of %d", name, t.Uses)
	}
	t.Left--
	if t.Grant != nil {
		r.State, r.Decided, r.By, r.Grant = hostapi.JoinApproved, r.Requested, "join token "+name+" of "+t.By, t.Grant
	}
	return put(d, TokenPrefix+t.ID, t.modified, t.Token)
}

// answer returns the answer that the device receives.
func (r Request) answer() hostapi.Joined {
	a := hostapi.Joined{State: r.State, Admission: r.Admission}
	if r.Admission == nil {
		a.Grant = r.Grant
	}
	switch r.State {
	case hostapi.JoinPending:
		a.Message = fmt.Sprintf("device %s waits for an operator: florctl join approve %s", r.Fingerprint(), r.Host)
	case hostapi.JoinRejected:
		a.Message = fmt.Sprintf("an operator rejected device %s: flor join with another token", r.Fingerprint())
	}
	return a
}
