# A service answers the requests.
{ base, merge, ... }:
merge base {
  providers.mailbox = {
    hosts = [ "alpha" ];
    port = 4650;
    url = "http://127.0.0.1:8090/mailbox";
    answer.password = { };
  };
}
