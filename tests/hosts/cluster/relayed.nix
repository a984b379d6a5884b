# Nobody has ursula's address: she is reached through raishan.
base: {
  pathSalt = "for-the-scenario-alone";
  hosts = base.hosts // {
    raishan = base.hosts.raishan // {
      relay = true;
    };
    ursula = removeAttrs base.hosts.ursula [ "address" ] // {
      relays = [ "raishan" ];
      hidden = true;
    };
  };
}
