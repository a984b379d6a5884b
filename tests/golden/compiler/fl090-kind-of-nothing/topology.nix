# Nothing answers, and a kind of Florete's that is misspelt.
{ base, merge, ... }:
merge base {
  providers.mailbox = {
    hosts = [ "alpha" ];
    port = 4650;
    answer.password = { };
  };
  providers.confg.hosts = [ "alpha" ];
}
