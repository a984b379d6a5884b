// Package sim is the fleet simulator: activation and providers in one process, in
// one bubble of virtual time (testing/synctest), on a network in memory. What runs
// is the real thing: activation.Run, the provider's server with its kinds and its
// SQLite state, TLS, files. What is made up is the network, the machines that die,
// and time. A story takes days and is told in seconds:
//
//	sim.Run(t, sim.Config{Hosts: 5}, func(f *sim.Fleet) {
//		f.Deaths(20, 5) // of hosts and providers, at moments that the seed draws
//		f.Up()
//		f.Boot()
//		f.Rotate()
//		f.Publish(f.Providers...)
//		f.Sleep(time.Hour)
//	})
//
// When a story is over the faults end, and these laws must hold, some of them all
// the time:
//
//	fulfilled  every need that is granted is fulfilled within Recovery
//	once       an idempotency key has one answer for as long as that is good
//	same       what has no answer yet is asked again with the same key
//	whole      what is delivered is exactly one answer, also after each death
//	key        an SVID is its key's, and of the identity asked for
//	quiet      nothing is asked for a need that is fulfilled and not due, but for documents
//	idle       nor by one more activation
//	rotated    what is delivered is of the generation asked for
//	bounded    connections are as rare as backoff makes them
//	audit      what a host received is in the audit log, but that its documents are the newest
//	alone      no host is taken for two machines
//	forward    the documents in force never go back
//	disk       activation can read what it wrote
//
// A seed fixes the faults: the fate of a host's n-th connection, at which moment of
// its n-th life a process dies, and whatever a story draws. It does not fix keys,
// jitter, and the order of what happens at the same time, so a replay goes through
// the same faults, not always through the same states:
//
//	go test ./tests/sim -run TestKillStorm -sim.seed 7
//	go test ./tests/sim -sim.runs 100
//
// Each seed that fails prints how to replay it and the log of what happened.
package sim
