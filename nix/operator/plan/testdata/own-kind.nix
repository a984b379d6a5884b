# A service gets a mailbox from an executable; then the executable changes, and an address is added.
{ base, merge, ... }:
let
  mailbox = run: {
    hosts = [ "alpha" ];
    port = 4650;
    inherit run;
    request.address.pattern = "*@example.org";
    answer.password = { };
  };
  need = address: {
    kind = "mailbox";
    request = { inherit address; };
  };
  before = merge base {
    services.wiki.needs.mail = need "wiki@example.org";
    providers.mailbox = mailbox "/usr/local/lib/florete/mailbox";
  };
in
{
  inherit before;
  after = merge before {
    services.wiki.needs = {
      mail = need "root@example.org";
      news = need "news@example.org";
    };
    providers.mailbox.run = "/opt/mailbox";
  };
}
