package authority

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/terminal"
)

// TokenScheme is the prefix of PKCS #11 URIs.
const TokenScheme = "pkcs11:"

// TokenModule is the PKCS #11 module that is used if a URI names none. It belongs to p11-kit and
// gives access to the tokens of all modules that are registered on a machine.
const TokenModule = "p11-kit-proxy.so"

// A TokenURI names a key on a PKCS #11 token (RFC 7512):
//
//	pkcs11:token=root;object=demo.flor?pin-source=/root/pin&module-path=/usr/lib/opensc-pkcs11.so
//
// It names the token by label or serial number, and the key by label (object), ID or both. The PIN
// is in a file, never in the URI. A build without cgo can parse URIs but not open them, because
// PKCS #11 modules are C libraries.
type TokenURI struct {
	Token, Serial string // label and serial number of the token; one of them is set
	Object        string // label of the key
	ID            string // ID of the key, in bytes
	Module        string // path of the module; empty for TokenModule
	PINSource     string // file with the PIN; empty to read the PIN from the terminal
	text          string
}

// String returns the URI as it was written.
func (u TokenURI) String() string { return u.text }

// ParseTokenURI parses a PKCS #11 URI (RFC 7512). The URI must name a token and a key. Errors never
// contain a part of the text that may be a PIN.
func ParseTokenURI(text string) (u TokenURI, err error) {
	text = strings.TrimSpace(text)
	rest, ok := strings.CutPrefix(text, TokenScheme)
	if !ok {
		return u, fmt.Errorf("PKCS #11 URI: want one such as %q", "pkcs11:token=root;object=demo.flor?pin-source=/root/pin")
	}
	u.text = text
	path, query, _ := strings.Cut(rest, "?")
	fields := map[string]*string{"token": &u.Token, "serial": &u.Serial, "object": &u.Object, "id": &u.ID}
	if err := uriAttributes(path, ";", fields); err != nil {
		return u, err
	}
	if err := uriAttributes(query, "&", map[string]*string{"module-path": &u.Module, "pin-source": &u.PINSource}); err != nil {
		return u, err
	}
	u.PINSource = strings.TrimPrefix(strings.TrimPrefix(u.PINSource, "file://"), "file:")
	switch {
	case (u.Token == "") == (u.Serial == ""):
		return u, errors.New("PKCS #11 URI: want one of token=LABEL and serial=NUMBER")
	case u.Object == "" && u.ID == "":
		return u, errors.New("PKCS #11 URI: want object=LABEL, id=ID, or both")
	case u.PINSource != "" && !filepath.IsAbs(u.PINSource):
		return u, errors.New("PKCS #11 URI: pin-source: want the path of a file from the root, since the URI is read elsewhere later")
	}
	return u, nil
}

// uriAttributes parses pairs of the form name=value. It stores each value in the field for its
// name.
func uriAttributes(text, separator string, fields map[string]*string) error {
	if text == "" {
		return nil
	}
	for pair := range strings.SplitSeq(text, separator) {
		name, value, _ := strings.Cut(pair, "=")
		field := fields[name]
		switch {
		case name == "pin-value":
			return errors.New("PKCS #11 URI: pin-value: everybody on this machine sees what is on a command line: write the PIN to a file, pin-source=FILE")
		case field == nil:
			return fmt.Errorf("PKCS #11 URI: attribute %.32q: want token or serial, object, id, and after a question mark module-path, pin-source", terminal.Text(name))
		case *field != "":
			return fmt.Errorf("PKCS #11 URI: %s twice", name)
		}
		v, err := url.PathUnescape(value)
		if err != nil || v == "" {
			return fmt.Errorf("PKCS #11 URI: %s: no value, or a percent sign without two digits", name)
		}
		*field = v
	}
	return nil
}

// IsTokenURI reports whether the content of a key file is a PKCS #11 URI, which names a key on a
// token. Other key files contain the key itself.
func IsTokenURI(file []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(file), []byte(TokenScheme)) }

// pin returns the PIN of the token. The function typed reads the PIN from the terminal if the URI
// names no file with it.
func (u TokenURI) pin(typed func(what, instead string) (string, error)) (string, error) {
	if u.PINSource == "" {
		return typed("PIN of token "+u.name(), "?pin-source=FILE in the URI")
	}
	b, err := secretfile.ReadFile(u.PINSource)
	if err != nil {
		return "", fmt.Errorf("pin-source: %w", err)
	}
	pin := strings.TrimRight(string(b), "\r\n")
	if pin == "" {
		return "", fmt.Errorf("pin-source: %s: no PIN in it", u.PINSource)
	}
	return pin, nil
}

// name describes the token in messages.
func (u TokenURI) name() string {
	if u.Token != "" {
		return fmt.Sprintf("%q", u.Token)
	}
	return "with serial " + terminal.Text(u.Serial)
}

// key describes the key in messages.
func (u TokenURI) key() string {
	if u.Object != "" {
		return fmt.Sprintf("%q", u.Object)
	}
	return fmt.Sprintf("with ID %x", u.ID)
}
