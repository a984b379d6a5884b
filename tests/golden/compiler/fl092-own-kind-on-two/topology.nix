# Two hosts, even with a shared store.
{ base, merge, ... }:
merge base {
  providers.store = {
    kind = "etcd";
    hosts = [ "alpha" ];
  };
  providers.mailbox = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 4650;
    run = "/usr/local/lib/florete/mailbox";
    answer.password = { };
  };
}
