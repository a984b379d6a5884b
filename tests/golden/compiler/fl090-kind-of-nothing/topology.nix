# Nothing answers the requests, and the name of a kind of Florete is misspelled.
{ base, merge, ... }:
merge base {
  providers.mailbox = {
    hosts = [ "alpha" ];
    port = 4650;
    answer.password = { };
  };
  providers.confg.hosts = [ "alpha" ];
}
