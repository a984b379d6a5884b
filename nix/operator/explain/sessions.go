package explain

import (
	"fmt"
	"strings"

	"github.com/florete/florete/nix/operator/compile"
)

// Sessions describes the sessions that people open at a service with the protocol ssh, rdp or vnc.
type Sessions struct {
	Protocol string `json:"protocol"`
	// Recipients lists the age keys whose owners can read recordings of the sessions. It is empty if
	// they are not recorded.
	Recipients []string `json:"recipients,omitempty"` // sorted
	Days       int      `json:"days,omitempty"`       // for which hosts keep a recording
}

// sessions returns the Sessions of a service, or nil if people open none there.
func sessions(s compile.Service) *Sessions {
	switch s.Protocol {
	case "ssh", "rdp", "vnc":
		return &Sessions{s.Protocol, s.Record.Recipients, s.Record.Days}
	}
	return nil
}

// String returns the Sessions as a line of text for people. It is empty for nil.
func (s *Sessions) String() string {
	switch {
	case s == nil:
		return ""
	case len(s.Recipients) == 0:
		return fmt.Sprintf("people open sessions there over %s\n", strings.ToUpper(s.Protocol))
	}
	return fmt.Sprintf("people open sessions there over %s, which are recorded: %s can read the recordings, and hosts keep them for %s\n",
		strings.ToUpper(s.Protocol), plural(len(s.Recipients), "recipient"), plural(s.Days, "day"))
}
