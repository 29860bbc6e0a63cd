/* SPDX-License-Identifier: Apache-2.0
 *
 * Bessel functions for float results, in double and without branches, so that loops over them are
 * vectorised. bessel.h has the same functions for double, one number at a time.
 *
 *     I, K       the Chebyshev series of bessel.h, computed anew for an error of 1e-10 or less and
 *                written in powers of u
 *     J, Y       up to 8 polynomials in x x, right to 1e-16 absolutely: near a zero that is what
 *                keeps a float's relative precision. Beyond: Hankel's form,
 *                sqrt(2 / (pi x)) (P cos(c) - Q sin(c)), up to MT_BESSEL_LIMIT
 *
 * The coefficients come from 60 nodes in 50 digits (mpmath).
 */
#ifndef KERNELS_NUMBER_VECTOR_BESSEL_H
#define KERNELS_NUMBER_VECTOR_BESSEL_H

#include "kernels/number/vector_math.h"

#define MT_BESSEL_NEAR  8.0F   /* up to here the _near functions of J and Y hold */
#define MT_BESSEL_LIMIT 1.0e5F /* and up to here the _far ones */

/* ---- series ---- */

/* exp(-x) I0(x), x = 4 (u + 1) */
MT_INLINE double mt__series_i0_near(double u)
{
    double p = -1.8107086053746207e-5;
    p = p * u + 5.0729105675377636e-5;
    p = p * u - 4.0985176037339848e-5;
    p = p * u + 9.4982886864681601e-5;
    p = p * u - 0.00041964929991180427;
    p = p * u + 0.00095164820820035936;
    p = p * u - 0.0017780021747176471;
    p = p * u + 0.0035351598371842702;
    p = p * u - 0.0068125680635539656;
    p = p * u + 0.012004880892660119;
    p = p * u - 0.019674831145387993;
    p = p * u + 0.030162278410181227;
    p = p * u - 0.042987891415718746;
    p = p * u + 0.056780420104456713;
    p = p * u - 0.069540901840293359;
    p = p * u + 0.07927479864866682;
    p = p * u - 0.084963405564894952;
    p = p * u + 0.087343443758266399;
    p = p * u - 0.089043440407418098;
    p = p * u + 0.094515627846368953;
    p = p * u - 0.11300432689708962;
    p = p * u + 0.20700192122686667;
    return p;
}

/* exp(-x) sqrt(x) I0(x), x = 16 / (u + 1) */
MT_INLINE double mt__series_i0_far(double u)
{
    double p = -6.7664956623092291e-9;
    p = p * u - 8.0637863115858979e-9;
    p = p * u + 1.8438049985577417e-8;
    p = p * u + 4.9763374485708076e-8;
    p = p * u + 9.0834093901758236e-8;
    p = p * u + 2.9372465233078763e-7;
    p = p * u + 1.483304322614683e-6;
    p = p * u + 1.1143595558447006e-5;
    p = p * u + 0.00013621612299992451;
    p = p * u + 0.0033605519582285555;
    p = p * u + 0.40217650944431713;
    return p;
}

/* exp(-x) I1(x) / x, x = 4 (u + 1) */
MT_INLINE double mt__series_i1_near(double u)
{
    double p = -2.0803479381107736e-6;
    p = p * u + 6.153141642272913e-6;
    p = p * u - 6.5461118256955941e-6;
    p = p * u + 1.6755628726995343e-5;
    p = p * u - 6.5284201869149364e-5;
    p = p * u + 0.00015894533080722356;
    p = p * u - 0.00033762682899211942;
    p = p * u + 0.00073548920367613572;
    p = p * u - 0.0015409830120376459;
    p = p * u + 0.0030106852061542002;
    p = p * u - 0.0055337510396800133;
    p = p * u + 0.0095822467069175443;
    p = p * u - 0.015571511791736816;
    p = p * u + 0.023686388346182017;
    p = p * u - 0.033671324903352622;
    p = p * u + 0.044674525824233044;
    p = p * u - 0.055280041794345267;
    p = p * u + 0.063767406732566928;
    p = p * u - 0.06848260610657846;
    p = p * u + 0.068057599833633373;
    p = p * u - 0.061124338030798915;
    p = p * u + 0.044687709875923763;
    return p;
}

/* exp(-x) sqrt(x) I1(x), x = 16 / (u + 1) */
MT_INLINE double mt__series_i1_far(double u)
{
    double p = 7.232413407546256e-9;
    p = p * u + 8.3266651725196499e-9;
    p = p * u - 2.0509828158674333e-8;
    p = p * u - 5.4509354796227349e-8;
    p = p * u - 1.0205367874223076e-7;
    p = p * u - 3.4437864124709447e-7;
    p = p * u - 1.8343770480442901e-6;
    p = p * u - 1.5039171153820777e-5;
    p = p * u - 0.00021923581189286684;
    p = p * u - 0.0097495771648224338;
    p = p * u + 0.38939845902655852;
    return p;
}

/* I0(x), x x = 2 (u + 1) */
MT_INLINE double mt__series_i0_small(double u)
{
    double p = 3.2367353282159442e-8;
    p = p * u + 2.3581518413478155e-6;
    p = p * u + 0.0001198206826414951;
    p = p * u + 0.0039285648192042346;
    p = p * u + 0.073589868361688319;
    p = p * u + 0.63586172819187299;
    p = p * u + 1.5660829297563307;
    return p;
}

/* I1(x) / x, x x = 2 (u + 1) */
MT_INLINE double mt__series_i1_small(double u)
{
    double p = 2.2915541416957694e-9;
    p = p * u + 1.9420919949985475e-7;
    p = p * u + 1.1787894764061958e-5;
    p = p * u + 0.00047928272548617351;
    p = p * u + 0.011785695316945507;
    p = p * u + 0.1471797367243291;
    p = p * u + 0.63586172815606746;
    return p;
}

/* K0(x) + log(x / 2) I0(x), x x = 2 (u + 1) */
MT_INLINE double mt__series_k0_near(double u)
{
    double p = 6.6238049648855197e-10;
    p = p * u + 6.0944524071046683e-8;
    p = p * u + 4.0545065605729842e-6;
    p = p * u + 0.00018280555146344957;
    p = p * u + 0.0050533926432125858;
    p = p * u + 0.071777010343768237;
    p = p * u + 0.34049732101337936;
    p = p * u - 0.30362077291579807;
    return p;
}

/* x (K1(x) - log(x / 2) I1(x)), x x = 2 (u + 1) */
MT_INLINE double mt__series_k1_near(double u)
{
    double p = -9.0335257128545777e-9;
    p = p * u - 7.0828404183511227e-7;
    p = p * u - 3.8918689595057996e-5;
    p = p * u - 0.001383168739947689;
    p = p * u - 0.027854235220063137;
    p = p * u - 0.24383852888907739;
    p = p * u - 0.33224095524029124;
    p = p * u + 0.88508828773025604;
    return p;
}

/* exp(x) sqrt(x) K0(x), x = 4 / (u + 1) */
MT_INLINE double mt__series_k0_far(double u)
{
    double p = -8.1484689863448546e-8;
    p = p * u + 1.8316274080769682e-7;
    p = p * u - 2.1048593727911625e-7;
    p = p * u + 6.395695022097789e-7;
    p = p * u - 2.2290165542366706e-6;
    p = p * u + 7.0595194332828432e-6;
    p = p * u - 2.4723638318659523e-5;
    p = p * u + 9.9546553833206186e-5;
    p = p * u - 0.00047977054948864613;
    p = p * u + 0.0030328930441579455;
    p = p * u - 0.031071461770323192;
    p = p * u + 1.2185953384958969;
    return p;
}

/* exp(x) sqrt(x) K1(x), x = 4 / (u + 1) */
MT_INLINE double mt__series_k1_far(double u)
{
    double p = -4.362174133100116e-8;
    p = p * u + 9.4395547521078417e-8;
    p = p * u - 8.368093968530311e-8;
    p = p * u + 2.5626498164747522e-7;
    p = p * u - 9.3511556340315886e-7;
    p = p * u + 2.7732129369775053e-6;
    p = p * u - 8.9507404243844509e-6;
    p = p * u + 3.283067679602524e-5;
    p = p * u - 0.00013959202657244275;
    p = p * u + 0.0007357258563617033;
    p = p * u - 0.0055667297641958815;
    p = p * u + 0.10334973769168671;
    p = p * u + 1.3631518903701361;
    return p;
}

/* J0(x), x x = 32 (u + 1) */
MT_INLINE double mt__series_j0_near(double u)
{
    double p = 4.0037632815796752e-13;
    p = p * u - 1.243301171273326e-11;
    p = p * u + 3.3634475788173604e-10;
    p = p * u - 7.9153230829520701e-9;
    p = p * u + 1.5956109104549217e-7;
    p = p * u - 2.717749223632098e-6;
    p = p * u + 3.8473197855944363e-5;
    p = p * u - 0.00044354592243115029;
    p = p * u + 0.0040580789891409909;
    p = p * u - 0.028472718610882046;
    p = p * u + 0.14598884856759264;
    p = p * u - 0.50746804584710004;
    p = p * u + 1.0383794611437211;
    p = p * u - 0.80808880766968721;
    p = p * u - 0.64846928308718364;
    p = p * u + 0.93030124729585712;
    p = p * u + 0.04582966485981377;
    return p;
}

/* J1(x) / x, x x = 32 (u + 1) */
MT_INLINE double mt__series_j1_near(double u)
{
    double p = -4.0045728425886456e-13;
    p = p * u + 1.1658972367678622e-11;
    p = p * u - 2.943013798001659e-10;
    p = p * u + 6.4311901772658356e-9;
    p = p * u - 1.1967081867878012e-7;
    p = p * u + 1.8684526037206012e-6;
    p = p * u - 2.404574865968694e-5;
    p = p * u + 0.00024949458135972608;
    p = p * u - 0.0020290394945705998;
    p = p * u + 0.012456814392263375;
    p = p * u - 0.054745818212847219;
    p = p * u + 0.15858376432721839;
    p = p * u - 0.25959486528593027;
    p = p * u + 0.15151665143806637;
    p = p * u + 0.081058660385897955;
    p = p * u - 0.05814382795599107;
    return p;
}

/* Y0(x) - 2 / pi log(x / 2) J0(x), x x = 32 (u + 1) */
MT_INLINE double mt__series_y0_near(double u)
{
    double p = -7.0733666670721379e-13;
    p = p * u + 2.1440608052636359e-11;
    p = p * u - 5.6462689150991875e-10;
    p = p * u + 1.2898070896458872e-8;
    p = p * u - 2.5144107029169116e-7;
    p = p * u + 4.1220543483587724e-6;
    p = p * u - 5.5818304627065165e-5;
    p = p * u + 0.00061043456437991939;
    p = p * u - 0.0052350276707989935;
    p = p * u + 0.033802856963996061;
    p = p * u - 0.15453679652310554;
    p = p * u + 0.44824604463563141;
    p = p * u - 0.61934078263033579;
    p = p * u - 0.21245999442065943;
    p = p * u + 1.3609456599655457;
    p = p * u - 0.41792074232069522;
    p = p * u - 0.36202734323714522;
    return p;
}

/* (Y1(x) - 2 / pi (log(x / 2) J1(x) - 1 / x)) / x, x x = 32 (u + 1) */
MT_INLINE double mt__series_y1_near(double u)
{
    double p = 6.9928984790187415e-13;
    p = p * u - 1.9850546730700581e-11;
    p = p * u + 4.8710207979077036e-10;
    p = p * u - 1.031524835818118e-8;
    p = p * u + 1.8524201840523818e-7;
    p = p * u - 2.7765056994330992e-6;
    p = p * u + 3.4063633753163958e-5;
    p = p * u - 0.00033372257005573924;
    p = p * u + 0.0025271340466828154;
    p = p * u - 0.014131923394262675;
    p = p * u + 0.054390116307946294;
    p = p * u - 0.12641995056569706;
    p = p * u + 0.12052035426888161;
    p = p * u + 0.09022750636730927;
    p = p * u - 0.20760857842830602;
    p = p * u + 0.045102662068694831;
    return p;
}

/* P, 128 / (x x) = u + 1 */
MT_INLINE double mt__series_p0_far(double u)
{
    double p = 5.5380425512383239e-12;
    p = p * u - 2.7549304767522504e-11;
    p = p * u + 1.5430831129269751e-10;
    p = p * u - 1.2100433370147668e-9;
    p = p * u + 1.2804017666717393e-8;
    p = p * u - 2.0527506887046808e-7;
    p = p * u + 6.1374160475431626e-6;
    p = p * u - 0.00053636731916844721;
    p = p * u + 0.99945727578825261;
    return p;
}

/* x Q, 128 / (x x) = u + 1 */
MT_INLINE double mt__series_q0_far(double u)
{
    double p = -3.4164000617701652e-11;
    p = p * u + 1.5391463041800736e-10;
    p = p * u - 7.5259933853973519e-10;
    p = p * u + 5.1324054347444723e-9;
    p = p * u - 4.5351575987053867e-8;
    p = p * u + 5.6850111218915351e-7;
    p = p * u - 1.181711042632956e-5;
    p = p * u + 0.00054665192764932988;
    p = p * u - 0.1244409110361129;
    return p;
}

/* P, 128 / (x x) = u + 1 */
MT_INLINE double mt__series_p1_far(double u)
{
    double p = -5.9958064435078262e-12;
    p = p * u + 3.0074851297475471e-11;
    p = p * u - 1.7056402360564498e-10;
    p = p * u + 1.3580727957625921e-9;
    p = p * u - 1.4708787296165847e-8;
    p = p * u + 2.4536829418874076e-7;
    p = p * u - 7.9596946635788828e-6;
    p = p * u + 0.00089880494162261765;
    p = p * u + 1.0009070262780815;
    return p;
}

/* x Q, 128 / (x x) = u + 1 */
MT_INLINE double mt__series_q1_far(double u)
{
    double p = 3.6830992209065259e-11;
    p = p * u - 1.6713296252558848e-10;
    p = p * u + 8.2623402709383315e-10;
    p = p * u - 5.7060628364467101e-9;
    p = p * u + 5.1363032019956932e-8;
    p = p * u - 6.633610637317963e-7;
    p = p * u + 1.4569614559190186e-5;
    p = p * u - 0.00076971670544465584;
    p = p * u + 0.37421499221959689;
    return p;
}
/* ---- modified functions, of any number ---- */

/* exp(-|x|) I0(x) */
MT_INLINE double mt__i0e_wide(double x)
{
    double a = fabs(x);
    double low = a > 8.0 ? 8.0 : a;
    double high = a < 8.0 ? 8.0 : a;
    double near = mt__series_i0_near(low * 0.25 - 1.0);
    double far = mt__series_i0_far(16.0 / high - 1.0) / sqrt(high);
    return a <= 8.0 ? near : far;
}

MT_INLINE double mt__i1e_wide(double x)
{
    double a = fabs(x);
    double low = a > 8.0 ? 8.0 : a;
    double high = a < 8.0 ? 8.0 : a;
    double near = a * mt__series_i1_near(low * 0.25 - 1.0);
    double far = mt__series_i1_far(16.0 / high - 1.0) / sqrt(high);
    double value = a <= 8.0 ? near : far;
    return x < 0.0 ? -value : value;
}

/* Of floats: exp(|x|) overflows only where the result does. */
MT_INLINE double mt__i0_wide(double x)
{
    double a = fabs(x);
    double value = mt__i0e_wide(x) * mt__exp_f64(a);
    return a > 700.0 ? (double)INFINITY : value;
}

MT_INLINE double mt__i1_wide(double x)
{
    double value = mt__i1e_wide(x) * mt__exp_f64(fabs(x));
    value = x > 700.0 ? (double)INFINITY : value;
    return x < -700.0 ? -(double)INFINITY : value;
}

/* K0(x) up to 2, and exp(x) K0(x) beyond; inf at 0, NaN below. */
MT_INLINE double mt__k0_parts(double x)
{
    double low = x > 2.0 ? 2.0 : x;
    double high = x < 2.0 ? 2.0 : x;
    double u = low * low * 0.5 - 1.0;
    double near = mt__series_k0_near(u) - mt__log_f64(0.5 * low) * mt__series_i0_small(u);
    double far = mt__series_k0_far(4.0 / high - 1.0) / sqrt(high);
    return x <= 2.0 ? near : far;
}

MT_INLINE double mt__k1_parts(double x)
{
    double low = x > 2.0 ? 2.0 : x;
    double high = x < 2.0 ? 2.0 : x;
    double u = low * low * 0.5 - 1.0;
    double near =
        mt__series_k1_near(u) / low + mt__log_f64(0.5 * low) * (low * mt__series_i1_small(u));
    near = x == 0.0 ? (double)INFINITY : near;
    double far = mt__series_k1_far(4.0 / high - 1.0) / sqrt(high);
    return x <= 2.0 ? near : far;
}

/* `value`: of the functions above; times exp(x), or not, up to 2. */
MT_INLINE double mt__k_scaled(double x, double value)
{
    double low = x > 2.0 ? 2.0 : x;
    return x <= 2.0 ? value * mt__exp_f64(low) : value;
}

MT_INLINE double mt__k_plain(double x, double value)
{
    return x <= 2.0 ? value : value * mt__exp_f64(-x);
}

/* ---- J and Y: up to MT_BESSEL_NEAR ---- */

MT_INLINE double mt__j0_near(double x)
{
    return mt__series_j0_near(x * x * 0.03125 - 1.0);
}

MT_INLINE double mt__j1_near(double x)
{
    return x * mt__series_j1_near(x * x * 0.03125 - 1.0);
}

/* x > 0 */
MT_INLINE double mt__y0_near(double x)
{
    double u = x * x * 0.03125 - 1.0;
    return mt__series_y0_near(u) +
           0.63661977236758134 * mt__log_f64(0.5 * x) * mt__series_j0_near(u);
}

MT_INLINE double mt__y1_near(double x)
{
    double u = x * x * 0.03125 - 1.0;
    double inner = mt__log_f64(0.5 * x) * (x * mt__series_j1_near(u)) - 1.0 / x;
    return x * mt__series_y1_near(u) + 0.63661977236758134 * inner;
}

/* ---- and beyond ---- */

/* sin(x) and cos(x), |x| <= MT_BESSEL_LIMIT. */
MT_INLINE double mt__sin_cos_f64(double x, double *cosine)
{
    double shifted = x * 0.63661977236758134 + 6755399441055744.0;
    double whole = shifted - 6755399441055744.0;
    uint64_t n = mt__bits_f64(shifted);
    double r = x - whole * 1.5707963267341256; /* 33 bits of pi/2: the product is exact */
    r = r - whole * 6.0771005065061922e-11;
    double z = r * r;
    double s = 2.8114572543455206e-15; /* Taylor's: |r| is below 0.79 */
    s = s * z - 7.6471637318198164e-13;
    s = s * z + 1.6059043836821613e-10;
    s = s * z - 2.5052108385441720e-08;
    s = s * z + 2.7557319223985893e-06;
    s = s * z - 1.9841269841269841e-04;
    s = s * z + 8.3333333333333332e-03;
    s = s * z - 1.6666666666666666e-01;
    double sine = r + r * z * s;
    double c = 4.7794773323873853e-14;
    c = c * z - 1.1470745597729725e-11;
    c = c * z + 2.0876756987868099e-09;
    c = c * z - 2.7557319223985888e-07;
    c = c * z + 2.4801587301587302e-05;
    c = c * z - 1.3888888888888889e-03;
    c = c * z + 4.1666666666666664e-02;
    double other = 1.0 - (0.5 * z - z * z * c);
    double first = (n & 1U) != 0 ? other : sine;
    double second = (n & 1U) != 0 ? sine : other;
    *cosine = mt__double_of(mt__bits_f64(second) ^ (((n + 1U) & 2U) << 62));
    return mt__double_of(mt__bits_f64(first) ^ ((n & 2U) << 62));
}

/* MT_BESSEL_NEAR < x <= MT_BESSEL_LIMIT. P and Q of the order with sines and cosines of
 * x - pi / 4, which are sums of those of x. */
MT_INLINE double mt__j0_far(double x)
{
    double c;
    double s = mt__sin_cos_f64(x, &c);
    double u = 128.0 / (x * x) - 1.0;
    double p = mt__series_p0_far(u);
    double q = mt__series_q0_far(u) / x;
    return sqrt(0.31830988618379067 / x) * (p * (c + s) - q * (s - c));
}

MT_INLINE double mt__y0_far(double x)
{
    double c;
    double s = mt__sin_cos_f64(x, &c);
    double u = 128.0 / (x * x) - 1.0;
    double p = mt__series_p0_far(u);
    double q = mt__series_q0_far(u) / x;
    return sqrt(0.31830988618379067 / x) * (p * (s - c) + q * (c + s));
}

MT_INLINE double mt__j1_far(double x)
{
    double c;
    double s = mt__sin_cos_f64(x, &c);
    double u = 128.0 / (x * x) - 1.0;
    double p = mt__series_p1_far(u);
    double q = mt__series_q1_far(u) / x;
    return sqrt(0.31830988618379067 / x) * (p * (s - c) + q * (s + c));
}

MT_INLINE double mt__y1_far(double x)
{
    double c;
    double s = mt__sin_cos_f64(x, &c);
    double u = 128.0 / (x * x) - 1.0;
    double p = mt__series_p1_far(u);
    double q = mt__series_q1_far(u) / x;
    return sqrt(0.31830988618379067 / x) * (q * (s - c) - p * (s + c));
}

/* sin(x) / x, |x| <= MT_BESSEL_LIMIT. */
MT_INLINE double mt__spherical_j0_wide(double x)
{
    double c;
    double s = mt__sin_cos_f64(x, &c);
    return x == 0.0 ? 1.0 : s / x;
}

#endif /* KERNELS_NUMBER_VECTOR_BESSEL_H */
