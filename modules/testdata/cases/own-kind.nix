# A kind of the cluster's own: its process on a host that provides no other kind, and the files that
# a service gets from it.
{ further, instance, ... }: {
  imports = [
    (instance "blue")
    ({ config, ... }: {
      seen = config.services.florete_blue.needs.wiki.mailbox-mail;
    })
  ];
  services.florete_blue = {
    cluster = further {
      services.wiki.needs.mail = {
        kind = "mailbox";
        request.address = "wiki@example.org";
        restart = "wiki.service";
      };
      providers.mailbox = {
        hosts = [ "ursula" ];
        port = 4650;
        run = "/usr/local/lib/florete/mailbox";
        request.address = { };
        answer.password = { };
      };
    };
    hostName = "ursula";
    host.openFirewall = true;
    needs.wiki.mailbox-mail.start = "credential";
  };
}
