# A service and its host, a host and its relay, and a caller and that relay.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hosts = {
    beta.transport = "tcp";
    gate = {
      address = "192.0.2.3";
      relay = true;
      sshHostKey = key "gate";
      transport = "quic";
    };
    nas = {
      relays = [ "gate" ];
      sshHostKey = key "nas";
      transport = "tcp";
    };
  };
  services.films = {
    host = "nas";
    port = 8096;
  };
  services.wiki.transport = "quic";
  roles.reader.services = [
    "films"
    "wiki"
  ];
}
