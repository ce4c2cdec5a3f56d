// Package storetest checks that a [replay.Store] keeps what the comments of
// package replay promise. It is for everyone who writes a store:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{
//			New:       func(t *testing.T) replay.Store { return mystore.New() },
//			InProcess: true,
//		})
//	}
//
// A store on a server gives the suite two instances, and a way to let time pass
// without waiting for it: see [Harness]. Each case has the name of a behaviour
// and runs on a fresh store; when it fails, it prints the sentence that the store
// has broken. A single one runs with
//
//	go test -run 'TestStore/one_of_many_claims_wins'
//
// What a store need not have, it need not pass: cases for [replay.Watcher],
// [replay.Sweeper] and [io.Closer] are left out for stores that are none, and the
// log says so. The suite runs its cases one after the other. Run it under the race
// detector, too.
//
// The file to read first is storetest.go.
package storetest
