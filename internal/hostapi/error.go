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

// Class is the class of a provider's error, which decides what the host does next, such as trying
// again. Classes are part of the wire format. Later releases may add classes.
type Class string

const (
	Transient Class = "transient" // back off, then repeat the request; honour RetryAfter
	Denied    Class = "denied"    // show the reason; repeat the request at most hourly
	Invalid   Class = "invalid"   // stop until something changes
)

// Code is a reason for which a provider refuses a request, together with the class of the error. A
// name that is used in several classes has a Code for each of them.
type Code struct {
	Name  string
	Class Class
}

// Error codes. Their names are part of the wire format. Later releases may add names.
var (
	CodePolicyBehind       = Code{"policy-behind", Transient} // the host was deployed before its provider
	CodeNewerFormat        = Code{"newer-format", Transient}  // only a newer release understands the request or the documents
	CodeClock              = Code{"clock", Transient}         // a certificate fails only because of the time; a clock may be wrong
	CodeUnavailable        = Code{"unavailable", Transient}   // the provider cannot be reached, or cannot answer now
	CodeStore              = Code{"store", Transient}         // the shared state store does not answer
	CodeInternal           = Code{"internal", Transient}      // a failure in the provider; see its log
	CodeMissing            = Code{"missing", Transient}       // an operator has not supplied the requested item yet
	CodeMissingInvalid     = Code{"missing", Invalid}         // an operator named an item that does not exist
	CodeMissingDenied      = Code{"missing", Denied}          // the policy contains no such item
	CodeBusy               = Code{"busy", Transient}          // too many requests
	CodeFull               = Code{"full", Transient}          // too many hosts connect; RetryAfter says when to connect again
	CodeBadNonce           = Code{"bad-nonce", Transient}     // the nonce expired or was made by another provider
	CodeUntrusted          = Code{"untrusted", Denied}        // the peer's certificate or proof does not verify
	CodeUntrustedTransient = Code{"untrusted", Transient}     // the certificate of the provider, or of a node that must enrol again, does not verify
	CodeReplayed           = Code{"replayed", Denied}         // the nonce was used before
	CodeNotGranted         = Code{"not-granted", Denied}      // the policy contains no grant
	CodeMismatch           = Code{"mismatch", Denied}         // the need is granted, but with other parameters
	CodeMismatchInvalid    = Code{"mismatch", Invalid}        // the content that an operator sent does not match its digest
	CodeRotated            = Code{"rotated", Denied}          // a newer generation of the need exists
	CodeRotation           = Code{"rotation", Denied}         // the request is not for the next rotation, or the secret cannot be rotated
	CodeRotationInvalid    = Code{"rotation", Invalid}        // an operator ordered the rotation of a secret that cannot be rotated
	CodeDeviceKey          = Code{"device-key", Denied}       // the node's SSH host key did not sign the connection
	CodeRevoked            = Code{"revoked", Denied}          // the caller is revoked by the revocation list
	CodeRevokedTransient   = Code{"revoked", Transient}       // the caller is suspended, or only its certificates issued later are accepted
	CodeListBehind         = Code{"list-behind", Transient}   // the provider's revocation list is older than the host's, or than the provider had before
	CodeJoin               = Code{"join", Denied}             // no join request of this device was approved
	CodeJoinTransient      = Code{"join", Transient}          // no join request of this device was approved yet
	CodeToken              = Code{"token", Denied}            // the join token is unknown, used up, expired, or for another host
	CodeMalformed          = Code{"malformed", Invalid}       // the request cannot be read
	CodeMalformedDenied    = Code{"malformed", Denied}        // documents from the network cannot be read
	CodeKeyMismatch        = Code{"key-mismatch", Invalid}    // the idempotency key belongs to another request
	CodeUnknownMethod      = Code{"unknown-method", Invalid}  // no such endpoint here
)

// Refused returns the code for a request that a provider program has refused. Such a program
// answers a kind of need that the topology itself defines, and chooses the class.
func Refused(class Class) Code { return Code{"refused", class} }

// Error is a provider's refusal of a request, as a host receives it. Message says what is wrong and
// how to mend it, and contains no secret.
type Error struct {
	Kind       Class  `json:"kind"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	RetryAfter int    `json:"retryAfter"` // seconds; zero leaves the delay to the host

	// Reached is true if the provider had proved its identity before the call failed. The provider
	// is then not down: either the provider itself or the connection failed. Reached is not sent
	// over the network.
	Reached bool `json:"-"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%s): %s", e.Kind, e.Code, e.Message) }

// Errorf returns an error with the given code and a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Kind: code.Class, Code: code.Name, Message: fmt.Sprintf(format, args...)}
}

// After returns a copy of the error that asks the host to wait before it tries again. The duration
// is rounded up to whole seconds.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = int((d + time.Second - 1) / time.Second)
	return &c
}

// Status returns the HTTP status code with which a provider sends the error (RFC 9110, section 15).
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

// AsError converts any error to an *Error. If err does not wrap an *Error, for example because the
// connection failed, the result is transient and has the code unavailable.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(CodeUnavailable, "%v", err)
}

// unsigned returns the error for a signature that could not be made. If the holder of the key
// returned an *Error with a remedy, the result is err. Otherwise the failure is a bug.
func unsigned(what string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(CodeMalformed, "%s: %v", what, err)
}

// maxRetryAfter is the longest delay in seconds that a provider can impose on a host.
const maxRetryAfter = 3600

// maxMessage is the maximum length in bytes of a provider's message that a host keeps and shows.
const maxMessage = 4 << 10

// parseError parses the body of an HTTP answer with which a provider refuses a request.
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
