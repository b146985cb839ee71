// Copyright 2026 The Weft Authors
// SPDX-License-Identifier: Apache-2.0

package resp

import (
	"time"

	"github.com/tidwall/redcon"
)

// command is a command of clients: a command on keys has plan, any other has do.
type command struct {
	least, most int // arguments; most is -1 if there is no bound but maxArgs
	plan        func(args [][]byte, now time.Time) (*plan, error)
	do          func(c *client, conn redcon.Conn, args [][]byte)
	inMulti     bool // of do: allowed between MULTI and EXEC
	early       bool // allowed before the password
}

func (c command) takes(n int) bool { return n >= c.least && (c.most < 0 || n <= c.most) }

// commands are all commands. The map is filled once, by init, because COMMAND reads the map.
var commands map[string]command

func init() {
	commands = map[string]command{
		// Values.
		"GET":      {least: 1, most: 1, plan: planGet},
		"MGET":     {least: 1, most: -1, plan: planMGet},
		"STRLEN":   {least: 1, most: 1, plan: planStrlen},
		"TYPE":     {least: 1, most: 1, plan: planType},
		"EXISTS":   {least: 1, most: -1, plan: planExists},
		"SET":      {least: 2, most: -1, plan: planSet},
		"SETNX":    {least: 2, most: 2, plan: planSetNX},
		"SETEX":    {least: 3, most: 3, plan: planSetEX(time.Second)},
		"PSETEX":   {least: 3, most: 3, plan: planSetEX(time.Millisecond)},
		"GETSET":   {least: 2, most: 2, plan: planGetSet},
		"GETDEL":   {least: 1, most: 1, plan: planGetDel},
		"MSET":     {least: 2, most: -1, plan: planMSet},
		"DEL":      {least: 1, most: -1, plan: planDel},
		"UNLINK":   {least: 1, most: -1, plan: planDel},
		"INCR":     {least: 1, most: 1, plan: planIncr(1)},
		"DECR":     {least: 1, most: 1, plan: planIncr(-1)},
		"INCRBY":   {least: 2, most: 2, plan: planIncrBy(1)},
		"DECRBY":   {least: 2, most: 2, plan: planIncrBy(-1)},
		"SCAN":     {least: 1, most: -1, do: doScan},
		"DBSIZE":   {least: 0, most: 0, do: doDBSize},
		"KEYS":     {least: 1, most: 1, do: refused("it would answer with all keys at once: use SCAN with MATCH")},
		"FLUSHALL": {least: 0, most: -1, do: refused("removing all keys at once is not offered: begin a new cluster")},
		"FLUSHDB":  {least: 0, most: -1, do: refused("removing all keys at once is not offered: begin a new cluster")},

		// Hashes.
		"HSET":    {least: 3, most: -1, plan: planHSet("hset", writeNumber)},
		"HMSET":   {least: 3, most: -1, plan: planHSet("hmset", writeOK)},
		"HSETNX":  {least: 3, most: 3, plan: planHSetNX},
		"HGET":    {least: 2, most: 2, plan: planHGet},
		"HMGET":   {least: 2, most: -1, plan: planHMGet},
		"HGETALL": {least: 1, most: 1, plan: planHash(writeFields)},
		"HKEYS":   {least: 1, most: 1, plan: planHash(writeEvery(0))},
		"HVALS":   {least: 1, most: 1, plan: planHash(writeEvery(1))},
		"HLEN":    {least: 1, most: 1, plan: planHash(writeFieldCount)},
		"HEXISTS": {least: 2, most: 2, plan: planHExists},
		"HSTRLEN": {least: 2, most: 2, plan: planHStrlen},
		"HDEL":    {least: 2, most: -1, plan: planHDel},

		// Sorted sets.
		"ZADD":          {least: 3, most: -1, plan: planZAdd},
		"ZREM":          {least: 2, most: -1, plan: planZRem},
		"ZSCORE":        {least: 2, most: 2, plan: planZScore},
		"ZCARD":         {least: 1, most: 1, plan: planZCard},
		"ZRANGEBYSCORE": {least: 3, most: -1, plan: planZRangeByScore},

		// Times to live.
		"EXPIRE":    {least: 2, most: -1, plan: planExpire(time.Second, false)},
		"PEXPIRE":   {least: 2, most: -1, plan: planExpire(time.Millisecond, false)},
		"EXPIREAT":  {least: 2, most: -1, plan: planExpire(time.Second, true)},
		"PEXPIREAT": {least: 2, most: -1, plan: planExpire(time.Millisecond, true)},
		"TTL":       {least: 1, most: 1, plan: planTTL(time.Second)},
		"PTTL":      {least: 1, most: 1, plan: planTTL(time.Millisecond)},
		"PERSIST":   {least: 1, most: 1, plan: planPersist},

		// Transactions.
		"MULTI":   {do: doMulti},
		"EXEC":    {do: doExec, inMulti: true},
		"DISCARD": {do: doDiscard, inMulti: true},
		"WATCH":   {least: 1, most: -1, do: doWatch},
		"UNWATCH": {do: doUnwatch},

		// Messages.
		"SUBSCRIBE":    {least: 1, most: -1, do: doSubscribe(false)},
		"PSUBSCRIBE":   {least: 1, most: -1, do: doSubscribe(true)},
		"UNSUBSCRIBE":  {least: 0, most: -1, do: doUnsubscribe("unsubscribe")},
		"PUNSUBSCRIBE": {least: 0, most: -1, do: doUnsubscribe("punsubscribe")},
		"PUBLISH":      {least: 2, most: 2, do: refused("messages come from changes of keys only")},

		// The connection.
		"PING":    {least: 0, most: 1, do: doPing},
		"ECHO":    {least: 1, most: 1, do: doEcho},
		"QUIT":    {do: doQuit, inMulti: true, early: true},
		"RESET":   {do: doReset, inMulti: true, early: true},
		"SELECT":  {least: 1, most: 1, do: doSelect},
		"AUTH":    {least: 1, most: 2, do: doAuth, early: true},
		"HELLO":   {least: 0, most: -1, do: doHello, early: true},
		"CLIENT":  {least: 1, most: -1, do: doClient},
		"COMMAND": {least: 0, most: -1, do: doCommand},
		"CONFIG":  {least: 1, most: -1, do: doConfig},
		"INFO":    {least: 0, most: -1, do: doInfo},
		"TIME":    {do: doTime},
	}
}

// refused is a command of Redis that this front does not have.
func refused(why string) func(*client, redcon.Conn, [][]byte) {
	return func(c *client, conn redcon.Conn, _ [][]byte) { c.fail(conn, "ERR not supported: "+why) }
}
