# The configuration declares an instance, and the topology does not.
{ flake, instance, ... }: {
  imports = [ (instance "blue") ];
  services.florete_blue = {
    cluster = flake;
    hostName = "ursula";
  };
}
