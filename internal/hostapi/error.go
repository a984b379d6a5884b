package hostapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
)

// ErrorKind decides what the host does next. Part of the wire, append-only.
type ErrorKind string

const (
	Transient ErrorKind = "transient" // back off and repeat the request, honouring RetryAfter
	Denied    ErrorKind = "denied"    // repeat the request at most hourly, and show the reason
	Invalid   ErrorKind = "invalid"   // stop until something changes
)

// Codes of errors. Part of the wire, append-only.
const (
	CodePolicyBehind  = "policy-behind"  // transient: the host was deployed before its provider
	CodeNewerFormat   = "newer-format"   // transient: only a newer release understands it
	CodeClock         = "clock"          // transient: a certificate fails by time alone
	CodeUnavailable   = "unavailable"    // transient: the provider cannot be reached, or cannot answer now
	CodeStore         = "store"          // transient: the store that providers share does not answer
	CodeInternal      = "internal"       // transient: something failed at the provider, whose log has it
	CodeMissing       = "missing"        // transient: an operator has not put there what is requested
	CodeBusy          = "busy"           // transient: too many requests
	CodeFull          = "full"           // transient: too many hosts connect, and the provider named when there is a place for this one
	CodeBadNonce      = "bad-nonce"      // transient: the nonce expired or was of another provider
	CodeUntrusted     = "untrusted"      // denied: the peer's certificate or proof does not verify; transient: the provider's, which may be renewed first
	CodeReplayed      = "replayed"       // denied: the nonce was used before
	CodeNotGranted    = "not-granted"    // denied: no grant in the policy
	CodeMismatch      = "mismatch"       // denied: granted, but with other parameters
	CodeRotated       = "rotated"        // denied: a newer generation exists
	CodeRotation      = "rotation"       // denied: not the next rotation, or of what cannot be rotated
	CodeDeviceKey     = "device-key"     // denied: the node's SSH host key did not sign the connection
	CodeRevoked       = "revoked"        // denied: the revocation list has it; transient: it is suspended, or only what is issued later is good
	CodeListBehind    = "list-behind"    // transient: the provider's revocation list is older than the host's, or than it was
	CodeJoin          = "join"           // denied: no join request of that device was approved; transient: none yet
	CodeToken         = "token"          // denied: the join token is unknown, used up, over, or for another host
	CodeRefused       = "refused"        // of any kind: what answers a kind of the topology's own returns that
	CodeMalformed     = "malformed"      // invalid: the request cannot be read
	CodeKeyMismatch   = "key-mismatch"   // invalid: the idempotency key belongs to another request
	CodeUnknownMethod = "unknown-method" // invalid: no such endpoint here
)

// Error is a provider's refusal. Message has place, value found and remedy, and
// no secret.
type Error struct {
	Kind       ErrorKind `json:"kind"`
	Code       string    `json:"code"`
	Message    string    `json:"message"`
	RetryAfter int       `json:"retryAfter"` // seconds, zero to leave it to the host

	// Reached reports whether the provider proved itself before the call of a Pass failed: it is
	// not down, and the failure is its own or of the connection to it. It is not on the wire.
	Reached bool `json:"-"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%s): %s", e.Kind, e.Code, e.Message) }

// Errorf makes an error of a kind and code.
func Errorf(kind ErrorKind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...)}
}

// After is e with a time to wait.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = int((d + time.Second - 1) / time.Second)
	return &c
}

// Status is the HTTP status that carries e (RFC 9110 section 15).
func (e *Error) Status() int {
	switch {
	case e.Code == CodeBusy:
		return http.StatusTooManyRequests
	case e.Kind == Transient:
		return http.StatusServiceUnavailable
	case e.Kind == Denied:
		return http.StatusForbidden
	default:
		return http.StatusBadRequest
	}
}

// AsError is err as an Error: itself when it is one, else transient and
// unavailable, which is what a failed connection is.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(Transient, CodeUnavailable, "%v", err)
}

// unsigned is the failure to sign: of the key's holder, where it names what to do, else a bug.
func unsigned(what string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(Invalid, CodeMalformed, "%s: %v", what, err)
}

// maxRetryAfter bounds how long a provider can keep a host waiting, in seconds.
const maxRetryAfter = 3600

// maxMessage bounds what a provider can have a host keep and show, in bytes.
const maxMessage = 4 << 10

// parseError reads the body of a refusal.
func parseError(b []byte) (*Error, error) {
	var e Error
	if err := strictjson.Decode(b, &e); err != nil {
		return nil, err
	}
	switch e.Kind {
	case Transient, Denied, Invalid:
	default:
		return nil, fmt.Errorf("error kind %q: want %q, %q or %q", e.Kind, Transient, Denied, Invalid)
	}
	if !spiffe.IsLabel(e.Code) {
		return nil, fmt.Errorf("error of kind %s with code %.80q: want one such as %q", e.Kind, e.Code, CodeNotGranted)
	}
	if len(e.Message) > maxMessage {
		e.Message = strings.ToValidUTF8(e.Message[:maxMessage], "") + "…"
	}
	e.RetryAfter = min(max(e.RetryAfter, 0), maxRetryAfter)
	return &e, nil
}
