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

// Class decides what the host does next. Part of the wire, append-only.
type Class string

const (
	Transient Class = "transient" // back off and repeat the request, honouring RetryAfter
	Denied    Class = "denied"    // repeat the request at most hourly, and show the reason
	Invalid   Class = "invalid"   // stop until something changes
)

// Code has the reason of a refusal, and its class: what the host does about it. A name that is of several
// classes has a Code for each.
type Code struct {
	Name  string
	Class Class
}

// Codes of errors. Their names are part of the wire, append-only.
var (
	CodePolicyBehind       = Code{"policy-behind", Transient} // the host was deployed before its provider
	CodeNewerFormat        = Code{"newer-format", Transient}  // only a newer release understands it
	CodeClock              = Code{"clock", Transient}         // a certificate fails by time alone
	CodeUnavailable        = Code{"unavailable", Transient}   // the provider cannot be reached, or cannot answer now
	CodeStore              = Code{"store", Transient}         // the store that providers share does not answer
	CodeInternal           = Code{"internal", Transient}      // something failed at the provider, whose log has it
	CodeMissing            = Code{"missing", Transient}       // an operator has not put there what is requested
	CodeMissingInvalid     = Code{"missing", Invalid}         // an operator names what is not there
	CodeMissingDenied      = Code{"missing", Denied}          // the policy has nothing of the sort
	CodeBusy               = Code{"busy", Transient}          // too many requests
	CodeFull               = Code{"full", Transient}          // too many hosts connect, and the provider named when there is a place for this one
	CodeBadNonce           = Code{"bad-nonce", Transient}     // the nonce expired or was of another provider
	CodeUntrusted          = Code{"untrusted", Denied}        // the peer's certificate or proof does not verify
	CodeUntrustedTransient = Code{"untrusted", Transient}     // a provider's certificate, or one of a node that must enrol again
	CodeReplayed           = Code{"replayed", Denied}         // the nonce was used before
	CodeNotGranted         = Code{"not-granted", Denied}      // no grant in the policy
	CodeMismatch           = Code{"mismatch", Denied}         // granted, but with other parameters
	CodeMismatchInvalid    = Code{"mismatch", Invalid}        // an operator sends other contents than it names
	CodeRotated            = Code{"rotated", Denied}          // a newer generation exists
	CodeRotation           = Code{"rotation", Denied}         // not the next rotation, or of what cannot be rotated
	CodeRotationInvalid    = Code{"rotation", Invalid}        // an operator orders one of what cannot be rotated
	CodeDeviceKey          = Code{"device-key", Denied}       // the node's SSH host key did not sign the connection
	CodeRevoked            = Code{"revoked", Denied}          // the revocation list has it
	CodeRevokedTransient   = Code{"revoked", Transient}       // it is suspended, or only what is issued later is good
	CodeListBehind         = Code{"list-behind", Transient}   // the provider's revocation list is older than the host's, or than it was
	CodeJoin               = Code{"join", Denied}             // no join request of that device was approved
	CodeJoinTransient      = Code{"join", Transient}          // no join request of that device was approved yet
	CodeToken              = Code{"token", Denied}            // the join token is unknown, used up, over, or for another host
	CodeMalformed          = Code{"malformed", Invalid}       // the request cannot be read
	CodeMalformedDenied    = Code{"malformed", Denied}        // documents from the network cannot be read
	CodeKeyMismatch        = Code{"key-mismatch", Invalid}    // the idempotency key belongs to another request
	CodeUnknownMethod      = Code{"unknown-method", Invalid}  // no such endpoint here
)

// Refused is the code of a refusal by what answers a kind of the topology's own, which returns
// the class.
func Refused(class Class) Code { return Code{"refused", class} }

// Error is a provider's refusal. Message has place, value found and remedy, and
// no secret.
type Error struct {
	Kind       Class  `json:"kind"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	RetryAfter int    `json:"retryAfter"` // seconds, zero to leave it to the host

	// Reached reports whether the provider proved itself before one of several Calls failed: it is
	// not down, and the failure is its own or of the connection to it. It is not on the wire.
	Reached bool `json:"-"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%s): %s", e.Kind, e.Code, e.Message) }

// Errorf makes an error with a code.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Kind: code.Class, Code: code.Name, Message: fmt.Sprintf(format, args...)}
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
	case e.Code == CodeBusy.Name:
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
	return Errorf(CodeUnavailable, "%v", err)
}

// unsigned is the failure to sign: of the key's holder, where it names what to do, else a bug.
func unsigned(what string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(CodeMalformed, "%s: %v", what, err)
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
		return nil, fmt.Errorf("error of kind %s with code %.80q: want one such as %q", e.Kind, e.Code, CodeNotGranted.Name)
	}
	if len(e.Message) > maxMessage {
		e.Message = strings.ToValidUTF8(e.Message[:maxMessage], "") + "…"
	}
	e.RetryAfter = min(max(e.RetryAfter, 0), maxRetryAfter)
	return &e, nil
}
