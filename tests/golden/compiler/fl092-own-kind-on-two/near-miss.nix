# One host.
{ base, merge, ... }:
merge base {
  providers.mailbox = {
    hosts = [ "beta" ];
    port = 4650;
    run = "/usr/local/lib/florete/mailbox";
    answer.password = { };
  };
}
