package redisstore_test

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/submitonce/submitonce/replay/redisstore"
)

func Example() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
	defer client.Close()
	store, err := redisstore.New(client, redisstore.Config{Prefix: "shop:"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	// Give the store to replay.New, in each instance.
}
