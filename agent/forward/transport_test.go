package forward_test

import (
	"slices"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestOverTCP repeats tests over QUIC with forwarders that reach each other over TCP alone.
func TestOverTCP(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it repeats tests")
	}
	agenttest.Transport = document.OverTCP
	defer func() { agenttest.Transport = document.AnyTransport }()
	repeatTests(t)
}

// TestOverRelays repeats them with forwarders that reach each other through relays alone.
func TestOverRelays(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it repeats tests")
	}
	throughRelays(t, 1) // which does not trust the new root of RotateThenReconnect
	repeatTests(t, "RotateThenReconnect")
}

func repeatTests(t *testing.T, without ...string) {
	for name, test := range map[string]func(*testing.T){
		"AllowListByFingerprint":      TestAllowListByFingerprint,
		"AllowListChange":             TestAllowListChange,
		"BytesAreCountedOnBothSides":  TestBytesAreCountedOnBothSides,
		"BytesAreLimited":             TestBytesAreLimited,
		"ConnectWhileStopping":        TestConnectWhileStopping,
		"ConnectionsAreLimited":       TestConnectionsAreLimited,
		"Datagrams":                   TestDatagrams,
		"DatagramsAreLimited":         TestDatagramsAreLimited,
		"DeniedByTheAllowList":        TestDeniedByTheAllowList,
		"Drain":                       TestDrain,
		"EndNeverComesAsReset":        TestEndNeverComesAsReset,
		"ExpiredSVID":                 TestExpiredSVID,
		"HalfClose":                   TestHalfClose,
		"HTTPThroughSOCKS":            TestHTTPThroughSOCKS,
		"ImpostorOfAnotherCA":         TestImpostorOfAnotherCA,
		"LargeTransfer":               TestLargeTransfer,
		"ListenMoves":                 TestListenMoves,
		"NotPublished":                TestNotPublished,
		"NothingIsLeft":               TestNothingIsLeft,
		"NothingIsLeftOfUDP":          TestNothingIsLeftOfUDP,
		"OpensAreLimited":             TestOpensAreLimited,
		"ProxyHeader":                 TestProxyHeader,
		"ReachableChange":             TestReachableChange,
		"RequestBodies":               TestRequestBodies,
		"RequestsAreLimited":          TestRequestsAreLimited,
		"RequestsAreNamed":            TestRequestsAreNamed,
		"Reset":                       TestReset,
		"ResetAfterHalfClose":         TestResetAfterHalfClose,
		"ResetByTheOtherHalf":         TestResetByTheOtherHalf,
		"ResetWhileBlocked":           TestResetWhileBlocked,
		"Restart":                     TestRestart,
		"Revoked":                     TestRevoked,
		"RotateThenReconnect":         TestRotateThenReconnect,
		"RotationUnderTraffic":        TestRotationUnderTraffic,
		"ServiceEndsConnections":      TestServiceEndsConnections,
		"ServiceSpeaksFirst":          TestServiceSpeaksFirst,
		"SOCKSEarlyData":              TestSOCKSEarlyData,
		"SOCKSReplies":                TestSOCKSReplies,
		"Sessions":                    TestSessions,
		"Stalled":                     TestStalled,
		"StrangerCAWithTheSameID":     TestStrangerCAWithTheSameID,
		"UDPAllowListChange":          TestUDPAllowListChange,
		"UDPRevoked":                  TestUDPRevoked,
		"UDPUpstreamIsGone":           TestUDPUpstreamIsGone,
		"UnixUpstream":                TestUnixUpstream,
		"UpstreamRefuses":             TestUpstreamRefuses,
		"WebSocket":                   TestWebSocket,
		"Whois":                       TestWhois,
		"AllowListChangeBesideAFault": TestAllowListChangeBesideAFault,
	} {
		if !slices.Contains(without, name) {
			t.Run(name, test)
		}
	}
}
